# What quickstart, check and dev share: packages, the unprivileged account, whether this host can raise the walls.
# shellcheck shell=sh disable=SC2034,SC2154,SC3013
# Sourced by sh (dash and bash both know -ef and -nt); needs $kr_root (the source tree) and, for installs, $kr_log (a file for noise). Nothing here
# downloads anything but Debian or Ubuntu packages, through apt-get, and what tests/mcp/package-lock.json names, through npm.

# package, then how to see that it is there: cmd:NAME on PATH, pc:NAME for pkg-config, file:PATH (a pattern will do)
kr_packages_build='
gcc              cmd:gcc
libc6-dev        file:/usr/include/stdlib.h
linux-libc-dev   file:/usr/include/linux/seccomp.h
make             cmd:make
meson            cmd:meson
ninja-build      cmd:ninja
pkg-config       cmd:pkg-config
libyaml-dev      pc:yaml-0.1
libjansson-dev   pc:jansson
libsqlite3-dev   pc:sqlite3
libssl-dev       pc:libssl
node-llhttp      file:/usr/share/llhttp/llhttp.c
musl-tools       cmd:musl-gcc
bubblewrap       cmd:bwrap
git              cmd:git
'
kr_packages_test='
clang            cmd:clang
llvm             cmd:llvm-symbolizer
libclang-rt-dev  file:/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer*.a
libcmocka-dev    pc:cmocka
libseccomp-dev   pc:libseccomp
python3          file:/usr/bin/python3
strace           cmd:strace
git-lfs          cmd:git-lfs
procps           cmd:ps
file             cmd:file
systemd          cmd:systemd-analyze
qemu-user-static cmd:qemu-aarch64-static
scdoc            cmd:scdoc
nodejs           cmd:node
npm              cmd:npm
iproute2         file:/sbin/ip
openssl          cmd:openssl
curl             cmd:curl
wget             cmd:wget
ca-certificates  file:/etc/ssl/certs/ca-certificates.crt
docker.io        file:/usr/sbin/dockerd
runc             file:/usr/sbin/runc
podman           file:/usr/bin/podman
uidmap           file:/usr/bin/newuidmap
slirp4netns      file:/usr/bin/slirp4netns
busybox-static   file:/bin/busybox
debootstrap      file:/usr/sbin/debootstrap
docker-registry  file:/usr/bin/docker-registry
zsh              cmd:zsh
fish             cmd:fish
'
kr_packages_package='
debhelper        cmd:dh
lintian          cmd:lintian
debootstrap      file:/usr/sbin/debootstrap
scdoc            cmd:scdoc
'
kr_packages_lint='
clang-format     cmd:clang-format
clang-tidy       cmd:clang-tidy
cppcheck         cmd:cppcheck
shellcheck       cmd:shellcheck
'

# kr_mcp_clients: published clients that the tests of MCP run, at the versions of tests/mcp; nothing when they are there.
kr_mcp_clients() {
	kr_clients=$kr_root/tests/mcp
	[ "$kr_clients/node_modules/.package-lock.json" -nt "$kr_clients/package-lock.json" ] && return 0
	npm ci --silent --no-audit --no-fund --prefix "$kr_clients" >>"$kr_log" 2>&1 </dev/null && return 0
	kr_die "npm could not install the clients of tests/mcp" "its output is at the end of $kr_log"
}

# The agent CLIs that tests/live/test_claude.py and test_codex.py drive: an old and a current one. Pinned, since a plain
# install takes whatever fits the machine's Node. NAME PACKAGE@VERSION
kr_agents_list='
claude-old @anthropic-ai/claude-code@2.1.197
claude     @anthropic-ai/claude-code@2.1.332
codex      @openai/codex@0.171.0
'

# kr_agents FOLDER: installs them into FOLDER/NAME and tells the tests (KRAFT_AGENTS); nothing when they are there.
kr_agents() {
	KRAFT_AGENTS=$1
	export KRAFT_AGENTS
	while read -r kr_name kr_package; do
		[ -n "$kr_name" ] || continue
		kr_is_there=$KRAFT_AGENTS/$kr_name/.installed
		[ "$(cat "$kr_is_there" 2>/dev/null)" != "$kr_package" ] || continue
		rm -rf "${KRAFT_AGENTS:?}/$kr_name"
		mkdir -p "$KRAFT_AGENTS/$kr_name"
		npm install --silent --no-save --no-audit --no-fund --prefix "$KRAFT_AGENTS/$kr_name" "$kr_package" \
			>>"$kr_log" 2>&1 </dev/null ||
			kr_die "npm could not install $kr_package" "its output is at the end of $kr_log"
		printf '%s\n' "$kr_package" >"$kr_is_there"
	done <<-END
		$kr_agents_list
	END
	chmod -R go+rX "$KRAFT_AGENTS"
}

# kr_runtimes WORK USER: starts the container runtimes of the tests (tests/runtimes) in the background; they end with this
# shell. kr_runtimes_wait comes before the tests, and is 1 where there are none: those tests then say so.
kr_runtimes() {
	KRAFT_RUNTIMES_FILE=$1/runtimes/runtimes.json
	export KRAFT_RUNTIMES_FILE
	kr_runtimes_sudo=
	[ "$(id -u)" = 0 ] || kr_runtimes_sudo="sudo -n"
	# shellcheck disable=SC2086 # words or nothing
	$kr_runtimes_sudo "$kr_root/tests/runtimes" serve --work "$1" --user "$2" ${KRAFT_AGENTS:+--agents "$KRAFT_AGENTS"} --for $$ \
		>"$kr_log.runtimes" 2>&1 </dev/null &
	kr_runtimes_pid=$!
}

kr_runtimes_wait() {
	while ! grep -q '^told in' "$kr_log.runtimes"; do
		if ! kill -0 "$kr_runtimes_pid" 2>/dev/null; then
			sed 's/^/  | /' "$kr_log.runtimes"
			grep -q 'another one serves' "$kr_log.runtimes" && [ -r "$KRAFT_RUNTIMES_FILE" ]
			return
		fi
		sleep 0.2
	done
	sed 's/^/  /' "$kr_log.runtimes"
}

kr_runtimes_end() {
	# shellcheck disable=SC2086,SC2015 # words or nothing; that it has ended already is fine
	$kr_runtimes_sudo kill "$kr_runtimes_pid" 2>/dev/null && wait "$kr_runtimes_pid" || true
}

kr_say() {
	printf '%s\n' "$*"
}

# kr_die MESSAGE [HINT]: what failed first, then the next step.
kr_die() {
	printf '%s: %s\n' "${kr_program:-kraft}" "$1" >&2
	[ $# -lt 2 ] || printf '  %s\n' "$2" >&2
	exit 1
}

# kr_exists PATTERN: whether it is the name of something.
kr_exists() {
	for kr_path in $1; do
		[ ! -e "$kr_path" ] || return 0
	done
	return 1
}

kr_have() {
	case $1 in
	cmd:*) command -v "${1#cmd:}" >/dev/null 2>&1 ;;
	pc:*) command -v pkg-config >/dev/null 2>&1 && pkg-config --exists "${1#pc:}" ;;
	file:*) kr_exists "${1#file:}" ;;
	esac
}

# kr_missing TABLE: the packages of the table that are not there, on one line.
kr_missing() {
	printf '%s\n' "$1" | while read -r kr_package kr_probe; do
		[ -n "$kr_package" ] || continue
		kr_have "$kr_probe" || printf '%s ' "$kr_package"
	done
}

# kr_install TABLE...: installs what is missing and says it. Needs root or sudo only when something is.
kr_install() {
	kr_want=
	for kr_table in "$@"; do
		kr_want="$kr_want$(kr_missing "$kr_table")"
	done
	[ -n "$kr_want" ] || return 0
	command -v apt-get >/dev/null 2>&1 ||
		kr_die "missing: $kr_want(there is no apt-get here to install them)" \
			"install them with this system's package manager, then run $kr_program again"
	if [ "$(id -u)" = 0 ]; then
		kr_sudo=
	elif command -v sudo >/dev/null 2>&1; then
		kr_sudo=sudo
	else
		kr_die "missing: $kr_want(you are not root, and there is no sudo)" \
			"ask an administrator for: apt-get install $kr_want"
	fi
	kr_say "installing with apt-get: ${kr_want% }"
	# Lists that are missing or old make the first try fail; then they are fetched and it is tried once more.
	kr_apt_install || { kr_apt update && kr_apt_install; } ||
		kr_die "apt-get could not install: $kr_want" "its output is at the end of $kr_log"
	kr_left=
	for kr_table in "$@"; do
		kr_left="$kr_left$(kr_missing "$kr_table")"
	done
	[ -z "$kr_left" ] || kr_die "installed, but still not usable: $kr_left" "look at the end of $kr_log"
}

kr_apt() {
	# shellcheck disable=SC2086 # $kr_sudo is one word or nothing
	$kr_sudo env DEBIAN_FRONTEND=noninteractive apt-get -y -q "$@" >>"$kr_log" 2>&1 </dev/null
}

kr_apt_install() {
	# shellcheck disable=SC2086 # a list of words
	kr_apt install --no-install-recommends $kr_want
}

# kr_as USER COMMAND...: runs a command as that account, with its own home and a plain environment.
kr_as() {
	kr_as_user=$1
	shift
	if [ "$(id -un)" = "$kr_as_user" ]; then
		"$@"
		return
	fi
	kr_as_home=$(getent passwd "$kr_as_user" | cut -d: -f6)
	runuser -u "$kr_as_user" -- env -i HOME="$kr_as_home" USER="$kr_as_user" LOGNAME="$kr_as_user" \
		PATH="/usr/local/bin:/usr/bin:/bin" TERM="${TERM:-dumb}" LANG="${LANG:-C.UTF-8}" "$@"
}

# kr_make_user NAME: an unprivileged account with a home, made once, by root.
kr_make_user() {
	id "$1" >/dev/null 2>&1 && return 0
	kr_say "making the unprivileged user '$1' (the sandbox never runs as root)"
	useradd --create-home --shell /bin/sh "$1" >>"$kr_log" 2>&1 || kr_die "cannot make the user '$1'" "see $kr_log"
}

kr_bwrap_program() {
	printf '%s\n' "${KRAFT_BWRAP:-$(command -v bwrap)}"
}

# kr_check_bwrap: its age and its setuid bit. kraft checks the same again at each launch; here it is told before a build.
kr_check_bwrap() {
	kr_bwrap=$(kr_bwrap_program)
	kr_version=$("$kr_bwrap" --version 2>/dev/null | awk '{ print $2 }')
	case $kr_version in
	'') kr_die "'$kr_bwrap' is not bubblewrap" "unset KRAFT_BWRAP, or point it at the absolute path of bubblewrap" ;;
	0.[0-7] | 0.[0-7].*)
		kr_die "bubblewrap is version $kr_version, and kraft needs 0.8.0 or later (Ubuntu 22.04 has 0.6)" \
			"use Debian 12 or Ubuntu 24.04 or later, or build a newer bubblewrap and set KRAFT_BWRAP to its absolute path"
		;;
	esac
	[ ! -u "$kr_bwrap" ] ||
		kr_die "'$kr_bwrap' is setuid, and kraft uses none that is" "take the bit away: chmod u-s $kr_bwrap"
}

kr_proc() {
	cat "/proc/sys/$1" 2>/dev/null
}

# kr_check_walls USER: whether that account may make a sandbox here; each known reason why not has its own words.
kr_check_walls() {
	kr_walls=$(kr_as "$1" "$kr_bwrap" --unshare-user --unshare-all --die-with-parent --ro-bind / / --proc /proc \
		--dev /dev true 2>&1 </dev/null) && return 0
	kr_retry="then run $kr_program again"
	if [ "$(kr_proc kernel/unprivileged_userns_clone)" = 0 ]; then
		kr_die "this kernel lets only root make user namespaces (kernel.unprivileged_userns_clone is 0)" \
			"allow it: sysctl -w kernel.unprivileged_userns_clone=1, $kr_retry"
	fi
	if [ "$(kr_proc user/max_user_namespaces)" = 0 ]; then
		kr_die "user namespaces are switched off (user.max_user_namespaces is 0)" \
			"allow some: sysctl -w user.max_user_namespaces=10000, $kr_retry"
	fi
	if [ "$(kr_proc kernel/apparmor_restrict_unprivileged_userns)" = 1 ]; then
		printf '%s: AppArmor does not let bubblewrap make user namespaces (Ubuntu 23.10 and later)\n' "$kr_program" >&2
		printf '  bubblewrap said: %s\n' "$kr_walls" >&2
		printf '  give it a profile, as root, %s:\n' "$kr_retry" >&2
		printf '    printf "abi <abi/4.0>,\\nprofile bwrap %s flags=(unconfined) { userns, }\\n" >/etc/apparmor.d/bwrap\n' \
			"$kr_bwrap" >&2
		printf '    apparmor_parser -r /etc/apparmor.d/bwrap\n' >&2
		exit 1
	fi
	kr_inside=$(kr_container)
	[ -z "$kr_inside" ] ||
		kr_die "no sandbox can be made inside this $kr_inside: $kr_walls" \
			"run on the machine itself, or let the container make user namespaces and mount /proc"
	kr_die "bubblewrap cannot make a sandbox here: $kr_walls" \
		"kraft runs nothing without its walls; find out what stops '$kr_bwrap --unshare-all --ro-bind / / true'"
}

# kr_container: the name of what we run in, when that is a container or a chroot that is known to forbid namespaces.
kr_container() {
	if [ -e /.dockerenv ]; then
		echo "docker container"
	elif [ -e /run/.containerenv ]; then
		echo "podman container"
	elif [ "$(id -u)" = 0 ] && [ ! /proc/1/root/. -ef /. ]; then
		echo "chroot"
	fi
}

# kr_logged MESSAGE COMMAND...: runs a command with its output in the log; on failure says where to look.
kr_logged() {
	kr_what=$1
	shift
	"$@" >>"$kr_log" 2>&1 </dev/null && return 0
	tail -n 15 "$kr_log" | sed 's/^/  | /' >&2
	kr_die "$kr_what failed" "everything it printed is in $kr_log"
}

# kr_setup DIR MESON-OPTIONS...: configures a build directory once; again only when the options given have changed.
kr_setup() {
	kr_dir=$1
	shift
	if [ -f "$kr_dir/build.ninja" ] && [ "$(cat "$kr_dir/kraft-options" 2>/dev/null)" = "${CC:-} $*" ]; then
		return 0
	fi
	rm -rf "$kr_dir"
	meson setup "$kr_dir" "$kr_root" "$@" && printf '%s\n' "${CC:-} $*" >"$kr_dir/kraft-options"
}
