/*
 * The errors that have more to tell than their message: 'kraft help E0301', kraft-errors(7).
 *
 * A number is an error's for ever: it is never given to another one, and one that goes leaves a gap. Its class gives the exit status
 * and is what code compares (err->code == KR_E_WALL).
 */
#ifndef KR_BASE_ERRORS_H
#define KR_BASE_ERRORS_H

/* name, number, class, title, why it is so, an example of the next step or of the right form */
#define KR_ERRORS(X) \
	X(UNKNOWN_KEY, 101, CONFIG, "a key that kraft does not know", \
		"Keys of configuration files are checked, since one that is misspelt would leave a rule out without a word. The nearest known key is in the hint.", \
		"exposee: [~/tools]      # refused\nexpose: [~/tools]       # what was meant") \
	X(NOT_CONNECTED, 102, CONFIG, "a checkout that is not connected", \
		"Kraft works only for repositories that have an entry in repos.yaml: it says what their workers see and reach.", \
		"kraft repo connect") \
	X(NO_NETWORK, 103, REFUSED, "a sandbox that names no hosts", \
		"Nothing says which hosts a worker may reach, and everything is no answer. Name them; an empty list is one too.", \
		"sandbox:\n  kind: os\n  network:\n    runtime:\n      allow: [api.anthropic.com]") \
	X(NO_SANDBOX, 104, REFUSED, "a repository without a sandbox", \
		"There is no switch that runs without walls, so a repository whose entry sets none, or false, runs nothing.", \
		"sandbox:\n  kind: os") \
	X(EXPOSE_REFUSED, 105, REFUSED, "an exposed path that cannot be shown", \
		"Some paths are protected: the home directory itself, and what holds keys, logins and tokens. No entry shows those, nor what holds them, nor a link to them. Others cannot be shown because they are missing, or because the sandbox has a place of its own there. 'kraft why path PATH' tells what would help.", \
		"expose: [~]             # refused\nexpose: [~/tools]       # a directory of its own") \
	X(TOO_MANY_PLACES, 106, LIMIT, "more exposed and masked places than a sandbox can have", \
		"Each costs a mount, and the time of all of them grows with the square. Expose the directory that holds them.", \
		"expose: [~/tools]       # in place of 301 files in it") \
	X(NO_SECRET, 107, CONFIG, "a credential that has no value", \
		"A secret that stays outside is read from kraft's own environment when a session begins. The variable is missing there, or holds what no header can.", \
		"export MY_API_KEY=...   # where kraft or its server is started") \
	X(NO_COMMAND, 201, REFUSED, "a command that was not found", \
		"It is looked for as your shell would, on the PATH that kraft was started with, and runs under the same name inside. 'expose' shows directories and adds none to PATH. 'kraft why command NAME' tells the lookup.", \
		"PATH=$HOME/tools/bin:$PATH kraft run -- mytool") \
	X(COMMAND_PROTECTED, 202, REFUSED, "a command that needs what cannot be shown", \
		"What a command needs is shown to the worker: its file, and the directory that it is installed in. Here that is, or holds, a protected path.", \
		"cp ~/.ssh/mytool ~/tools/bin/    # away from what is protected") \
	X(NO_BWRAP, 301, WALL, "bubblewrap is missing", \
		"On Linux the walls of kind: os are raised by bubblewrap. Without it nothing runs.", \
		"sudo apt-get install bubblewrap") \
	X(BWRAP_SETUID, 302, WALL, "bubblewrap is setuid", \
		"A bubblewrap that becomes root would be a way to root for a worker. Distributions install it without that bit where users may make namespaces.", \
		"sudo chmod u-s /usr/bin/bwrap") \
	X(BWRAP_OLD, 303, WALL, "bubblewrap is too old", \
		"Before 0.8.0 it cannot switch off user namespaces inside, in which a worker would have rights that it must not have.", \
		"bwrap --version") \
	X(NO_FILTER, 304, WALL, "a machine without a system call filter", \
		"Kraft has filters for x86_64 and aarch64. Without one the kernel's surface would be open.", \
		"uname -m") \
	X(NO_USERNS, 305, WALL, "user namespaces are switched off", \
		"An ordinary user raises walls in a namespace of its own. This kernel, or its administrator, allows none.", \
		"sudo sysctl user.max_user_namespaces=15000") \
	X(APPARMOR, 306, WALL, "AppArmor takes the rights away", \
		"Ubuntu since 23.10 gives a program without a profile namespaces without rights in them. A profile for exactly this bubblewrap gives them back, and to no other program.", \
		"kraft admin doctor --fix") \
	X(TOO_NESTED, 307, WALL, "no more user namespaces are to be had", \
		"Their number is limited, and so is how deep they nest.", \
		"sysctl user.max_user_namespaces") \
	X(IN_CHROOT, 308, WALL, "kraft runs in a chroot", \
		"There the kernel makes no user namespace. Enter the tree with its own mount namespace, or work outside.", \
		"systemd-nspawn -D TREE") \
	X(IN_CONTAINER, 309, WALL, "kraft runs in a container that allows no sandbox", \
		"A container can forbid namespaces, or mounting /proc. Run kraft on the host, or let the container do what walls need.", \
		"docker run --security-opt seccomp=unconfined --security-opt systempaths=unconfined ...") \
	X(IS_ROOT, 310, REFUSED, "kraft was started by root", \
		"A worker's walls keep it to what the user may do, and root may do everything. Use an ordinary account.", \
		"sudo -u me kraft run -- make test") \
	X(NO_KEYRING, 311, WALL, "there is no session keyring", \
		"Each session gets a keyring of its own, or your keys would be the worker's. The quota is spent, or a filter forbids the call.", \
		"cat /proc/key-users") \
	X(NO_RUNTIME, 401, WALL, "no container runtime is here", \
		"kind: docker starts containers with the CLI that sandbox.yaml names, else with docker or podman from PATH.", \
		"sudo apt-get install podman") \
	X(RUNTIME_SILENT, 402, WALL, "the container runtime does not answer", \
		"Its service may not run, or be busy. Kraft asks again after a while, so that nothing waits for it for ever.", \
		"docker info") \
	X(NO_LIMIT, 403, WALL, "a limit that the runtime would not enforce", \
		"A limit that was asked for and is left out is no limit. The runtime, or the host's control groups, cannot do it: rootless ones need cgroup v2 with delegation.", \
		"docker info --format '{{.CgroupVersion}} {{.Warnings}}'") \
	X(IMAGE_ARCHITECTURE, 404, CONFIG, "an image of another machine", \
		"The runtime would emulate it, which is slow at best and checks nothing that kraft checks.", \
		"docker pull --platform linux/amd64 IMAGE") \
	X(KIT_DIGEST, 405, REFUSED, "a kit that is not the one that was named", \
		"A kit is named by the digest of its manifest. What the registry gave has another one: it was changed, or is another kit.", \
		"skopeo inspect docker://REGISTRY/KIT@sha256:...") \
	X(SELINUX, 406, WALL, "SELinux has no answer", \
		"Where SELinux enforces, containers may use only what has their label. Giving it one changes files of yours, so that is for you to say.", \
		"selinux: relabel        # in sandbox.yaml; or disable") \
	X(NO_CHECKOUT, 501, NOT_FOUND, "you stand in no checkout", \
		"Most commands are about the git checkout that you stand in. Go there, or name it.", \
		"kraft run --repo ~/src/project -- make") \
	X(NO_COMMIT, 502, NOT_FOUND, "a repository without a commit", \
		"A worktree begins at a commit, and there is none yet.", \
		"git commit --allow-empty -m start") \
	X(OTHERS_CHECKOUT, 503, REFUSED, "a repository of another user", \
		"Its hooks and settings are theirs, so git would run what they chose as you.", \
		"sudo chown -R $USER ~/src/project") \
	X(NO_GIT, 504, UNSUPPORTED, "git is missing", \
		"Worktrees and branches are git's.", \
		"sudo apt-get install git") \
	X(ITEM_BUSY, 505, BUSY, "the item has a session already", \
		"Two at once in one worktree would spoil each other's work.", \
		"kraft view sessions") \
	X(NO_ITEM, 506, NOT_FOUND, "there is no such item", \
		"Items go by their id, or by the beginning of one that is theirs alone.", \
		"kraft view list") \
	X(NO_LOGIN, 601, LOGIN, "the agent has no login in the sandbox", \
		"Its login files stay outside, so it takes a token by a variable, which your shell or the server has to have.", \
		"claude setup-token\nexport CLAUDE_CODE_OAUTH_TOKEN=...") \
	X(AGENT_OLD, 602, REFUSED, "the agent is too old", \
		"What its harness says of it was tried from a version on.", \
		"npm install -g @openai/codex") \
	X(GATE_UNPROVEN, 603, REFUSED, "the agent does not heed kraft's hook", \
		"Where rules for tools hold by a hook, each new version is asked once whether it heeds it, and one that does not is not started.", \
		"kraft admin harnesses codex") \
	X(NO_SERVER, 701, SERVER, "no server is running", \
		"What goes on in the background is the server's. Everything else works without.", \
		"kraft admin start --detach") \
	X(STORE_NEWER, 702, UNSUPPORTED, "the store is of a newer kraft", \
		"A newer program has changed it. It kept a copy from before, and an older one would spoil the new.", \
		"kraft --version") \
	X(STORE_DAMAGED, 703, SYSTEM, "the store is damaged", \
		"The database has bytes that it did not write. Nothing was changed; keep a copy before anything is tried.", \
		"sqlite3 orchestrator.db .recover") \
	X(DISK_FULL, 704, LIMIT, "the disk is full", \
		"Nothing that the store holds is lost, and the same command works when there is room.", \
		"kraft admin prune") \
	X(SOCKET_PATH, 705, LIMIT, "a path that is too long for a socket", \
		"A socket's path is at most 107 bytes, and kraft's lies below its run directory.", \
		"export KRAFT_RUN_DIR=/var/tmp/me")

#endif
