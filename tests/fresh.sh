#!/bin/sh
# The first hour of a newcomer, from nothing: a minimal Debian tree, a fresh clone in it, ./quickstart and then ./check,
# with nothing else typed; as root, or as a plain user who has sudo. Needs root, debootstrap and a way to Debian's
# packages. Not part of ./check.
#
#     tests/fresh.sh [--user] [--suite NAME] [--with FILE]... [COMMAND...]     default: ./quickstart, then ./check
#
# --with: a file that lies beside the clone's own in its top folder.
#
# A chroot will not do: the kernel makes no user namespace in one. So the tree becomes the root of a mount namespace by
# pivot_root, with its own /proc, /dev, /sys and process ids. What is installed and built goes to a layer that is thrown
# away; the bare tree is kept under /var/cache/kraft-fresh for the next time.
set -eu

kr_root=$(cd "$(dirname "$0")/.." && pwd)
kr_program=tests/fresh.sh
. "$kr_root/scripts/host.sh"

kr_suite=bookworm
kr_who=root
kr_with=
while [ $# -gt 0 ]; do
	case $1 in
	--user) kr_who=newcomer ;;
	--suite)
		kr_suite=$2
		shift
		;;
	--with)
		kr_with="$kr_with $2"
		shift
		;;
	--inside)
		shift
		kr_who=$1
		shift
		kr_inside=yes
		break
		;;
	--*) kr_die "there is no option '$1'" ;;
	*) break ;;
	esac
	shift
done

# ---- inside the new root ----

inside() {
	kr_home=$(getent passwd "$kr_who" | cut -d: -f6)
	for kr_step in "$@"; do
		kr_say "--- $kr_who: $kr_step"
		# As a person's first shell would be: a home, a plain PATH, no variable of ours.
		(cd "$kr_home/kraft" && runuser -u "$kr_who" -- env -i HOME="$kr_home" USER="$kr_who" LOGNAME="$kr_who" \
			PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin sh -c "$kr_step") ||
			kr_die "'$kr_step' as $kr_who ended with status $?"
	done
	kr_say "--- $kr_who: all done"
}

if [ "${kr_inside:-}" = yes ]; then
	inside "$@"
	exit
fi

# ---- outside ----

[ "$(id -u)" = 0 ] || kr_die "this needs root, for debootstrap and mounts"
command -v debootstrap >/dev/null || kr_die "missing: debootstrap" "apt-get install debootstrap"
kr_cache=/var/cache/kraft-fresh
kr_base=$kr_cache/$kr_suite
mkdir -p "$kr_cache"
if [ ! -e "$kr_base/.complete" ]; then
	kr_say "--- making a minimal $kr_suite in $kr_base"
	rm -rf "$kr_base"
	debootstrap --variant=minbase "$kr_suite" "$kr_base" >"$kr_cache/$kr_suite.log" 2>&1 ||
		kr_die "debootstrap failed" "see $kr_cache/$kr_suite.log"
	# The same sources and trust as this machine has.
	rm -f "$kr_base/etc/apt/sources.list"
	cp -a /etc/apt/. "$kr_base/etc/apt/"
	rm -f "$kr_base/etc/apt/sources.list.d"/*node* "$kr_base/etc/apt/sources.list.d"/*google*
	if [ "$kr_suite" != "$(. /etc/os-release && echo "$VERSION_CODENAME")" ]; then
		rm -rf "$kr_base/etc/apt/sources.list.d"
	fi
	touch "$kr_base/.complete"
fi

kr_layer=$(mktemp -d "$kr_cache/layer.XXXXXX")
mkdir "$kr_layer/root" "$kr_layer/over"
trap 'rm -rf "$kr_layer"' EXIT
[ $# -gt 0 ] || set -- ./quickstart ./check

# shellcheck disable=SC2016 # the inner shell's own variables
kr_script='
set -eu
layer=$1 base=$2 clone=$3 who=$4
shift 4
mount -t tmpfs -o size=90% fresh "$layer/over"
mkdir "$layer/over/up" "$layer/over/work"
mount -t overlay -o "lowerdir=$base,upperdir=$layer/over/up,workdir=$layer/over/work" fresh "$layer/root"
cd "$layer/root"
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
[ ! -d /sys/fs/cgroup ] || mount --rbind /sys/fs/cgroup sys/fs/cgroup
mount -t tmpfs -o mode=755 dev dev
for node in null zero full random urandom tty; do
	: >dev/$node
	mount --bind /dev/$node dev/$node
done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
ln -s fd/0 dev/stdin
ln -s fd/1 dev/stdout
ln -s fd/2 dev/stderr
mount -t tmpfs -o mode=1777 shm dev/shm
cp /etc/resolv.conf etc/resolv.conf
cp /etc/hosts etc/hosts
for certificates in /usr/local/share/ca-certificates /etc/ssl/certs; do
	[ ! -d "$certificates" ] || { mkdir -p ".$certificates" && cp -rL "$certificates/." ".$certificates/" 2>/dev/null || true; }
done
for rc in /etc/npmrc; do [ ! -e $rc ] || cp $rc .$rc; done
mkdir old
pivot_root . old
cd /
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
home=/root
if [ "$who" != root ]; then
	apt-get -q update >/dev/null
	DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends sudo >/dev/null 2>&1
	useradd --create-home --shell /bin/sh "$who"
	printf "%s ALL=(ALL) NOPASSWD: ALL\n" "$who" >/etc/sudoers.d/newcomer
	home=/home/$who
fi
mkdir "$home/kraft"
(cd "/old$clone" && tar -cf - .) | tar -C "$home/kraft" --no-same-owner -xf -
chown -R "$who" "$home/kraft"
umount -l /old
rmdir /old
exec "$home/kraft/tests/fresh.sh" --inside "$who" "$@"
'
# A fresh clone: what is committed, nothing else.
git clone -q "$kr_root" "$kr_layer/clone"
# shellcheck disable=SC2086 # files whose names have no blank
[ -z "$kr_with" ] || cp $kr_with "$kr_layer/clone/"
unshare --mount --propagation private --pid --fork --ipc --uts --kill-child \
	sh -c "$kr_script" sh "$kr_layer" "$kr_base" "$kr_layer/clone" "$kr_who" "$@"
