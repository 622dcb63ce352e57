#!/bin/sh
# kraft's Debian package as a person meets it: built, looked at by lintian, built again to the same bytes; then in a clean Debian tree
# (tests/fresh.sh) installed, used by a plain user as docs/first-session.md says, upgraded while a server runs, removed, purged. Prints TAP.
# Needs root, debhelper, lintian, debootstrap and a way to Debian's packages: a part of ./check --all.
set -eu

kr_root=$(cd "$(dirname "$0")/.." && pwd)
kr_program=tests/package.sh

# ---- in the clean tree, as a plain user who may use sudo; here stand the packages ----

say() {
	kr_n=$((kr_n + 1))
	echo "ok $kr_n - $*"
}

inside() {
	set -x
	kr_n=4
	export DEBIAN_FRONTEND=noninteractive
	cd "$HOME/kraft"
	sudo apt-get -q update >/dev/null
	sudo apt-get install -y -q ./one.deb >/dev/null 2>&1
	kraft --version | grep -q '^kraft [0-9.]*, commit [0-9a-f]\{12\}$'
	man -w kraft-errors >/dev/null 2>&1 || test -e /usr/share/man/man7/kraft-errors.7.gz
	say "it is installed with what it needs"
	kraft admin doctor >"$HOME/doctor" || {
		sed 's/^/# /' "$HOME/doctor"
		exit 1
	}
	git config --global user.name newcomer
	git config --global user.email newcomer@newcomer.example
	mkdir "$HOME/adder"
	cd "$HOME/adder"
	printf 'four\n' >sum
	git init -q -b main
	git add .
	git commit -qm one
	kraft repo connect . >/dev/null
	sed -i 's/^    sandbox:/    setup_command: ""\n    test_command: "true"\n    sandbox:/' "$HOME/.kraft/config/repos.yaml" # there is no make here
	# shellcheck disable=SC2016 # the inner shell's own
	kraft run -- sh -c 'test ! -e "$1" && cat sum' sh "$HOME/doctor" | grep -q '^four$'
	say "doctor is content, and a first command runs behind walls"
	kr_item=$(kraft item create 'more' -- sh -c 'echo five >>sum && git commit -qam "[1] five"' | cut -d' ' -f1)
	kraft item start "$kr_item" >/dev/null 2>&1 || true
	kraft item approve "$kr_item" >/dev/null 2>&1
	git -C "$HOME/adder" log --all --format=%s | grep -q five
	say "a first session is finished: a branch has moved"
	kraft admin start --detach >/dev/null
	cd "$HOME/kraft"
	sudo apt-get install -y -q ./two.deb >/dev/null 2>&1
	dpkg-query -W -f '${Version}' kraft | grep -q '+upgrade$'
	kraft admin health >/dev/null
	kraft admin restart --detach >/dev/null
	kraft item list | grep -q more
	say "upgraded while a server runs, and it goes on with what is there"
	kraft admin stop >/dev/null
	dpkg -L kraft >"$HOME/files"
	sudo apt-get remove -y -q kraft >/dev/null 2>&1
	sudo apt-get purge -y -q kraft >/dev/null 2>&1
	while read -r kr_file; do
		[ -d "$kr_file" ] || [ ! -e "$kr_file" ] || {
			echo "# $kr_file is left"
			exit 1
		}
	done <"$HOME/files"
	test ! -e /usr/libexec/kraft
	test -e "$HOME/.kraft/run/orchestrator.db"
	say "removed and purged: nothing of it is left, and all that is the person's"
}

if [ "${1:-}" = --inside ]; then
	inside
	exit
fi

# ---- outside ----

. "$kr_root/scripts/host.sh"
kr_place=$(mktemp -d "${TMPDIR:-/tmp}/kraft-package.XXXXXX")
trap 'rm -rf "$kr_place"' EXIT
echo 1..9
"$kr_root/scripts/build-deb" "$kr_place/a" >/dev/null
kr_deb=$(ls "$kr_place"/a/kraft_*.deb)
lintian --fail-on error,warning --allow-root "$kr_deb" | sed 's/^/# /'
[ -z "$(lintian --allow-root "$kr_deb" 2>&1)" ]
echo "ok 1 - lintian has nothing to say"
(umask 077 && cd / && env TZ=Asia/Tokyo LC_ALL=C TMPDIR="$kr_place" HOME=/nonexistent "$kr_root/scripts/build-deb" "$kr_place/b" >/dev/null)
cmp "$kr_deb" "$kr_place"/b/kraft_*.deb
echo "ok 2 - built again elsewhere, at another time and by another umask: the same bytes"
dpkg-deb -x "$kr_deb" "$kr_place/x"
for kr_needed in $(objdump -p "$kr_place/x/usr/bin/kraft" | awk '$1 == "NEEDED" { print $2 }'); do
	case $kr_needed in
	libc.so.6 | libm.so.6) ;;
	*) kr_die "kraft needs $kr_needed, and not libc alone" ;;
	esac
done
for kr_part in libyaml-dev libjansson-dev libsqlite3-dev libssl-dev node-llhttp musl-dev; do
	zcat "$kr_place/x/usr/share/doc/kraft/THIRD-PARTY.gz" | grep -q "^==== $kr_part [0-9]" || kr_die "THIRD-PARTY does not name $kr_part"
done
echo "ok 3 - the program needs libc alone, and THIRD-PARTY names what is in it"
"$kr_root/scripts/build-tarball" "$kr_place/t" >/dev/null
mkdir "$kr_place/un packed"
tar -C "$kr_place/un packed" -xf "$kr_place"/t/kraft-*.tar.xz
set -- "$kr_place/un packed"/kraft-*
objdump -p "$1/bin/kraft" | awk '$1 == "NEEDED" && $2 !~ /^lib[cm]\.so\.6$/ { exit 1 }'
chmod -R go+rX "$kr_place" && chmod go+x "$kr_place"
kr_make_user kraft-test
kr_as kraft-test "$1/bin/kraft" admin doctor | grep -q "^ok  *guest program *'.*/libexec/kraft/guest'"
test -s "$1/share/doc/kraft/THIRD-PARTY"
echo "ok 4 - a tarball, unpacked anywhere, needs libc alone and finds its programs"
cp "$kr_deb" "$kr_place/one.deb"
dpkg-deb -R "$kr_deb" "$kr_place/two"
sed -i 's/^Version: .*/&+upgrade/' "$kr_place/two/DEBIAN/control"
dpkg-deb --root-owner-group -b "$kr_place/two" "$kr_place/two.deb" >/dev/null
kr_failed=
"$kr_root/tests/fresh.sh" --user --with "$kr_place/one.deb" --with "$kr_place/two.deb" 'sh tests/package.sh --inside' >"$kr_place/out" 2>&1 || kr_failed=yes
grep '^ok' "$kr_place/out"
[ -z "$kr_failed" ] || {
	sed 's/^/# /' "$kr_place/out"
	exit 1
}
