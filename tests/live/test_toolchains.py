#!/usr/bin/env python3
"""Toolchains outside /usr, as people have them (OS-ENV-06): layouts like the real ones, with real programs in them,
each tried as a person would: first plainly, then with what the refusal or the page advises."""
from kraftlive import *


def copy(program, to):
    os.makedirs(os.path.dirname(to), exist_ok=True)
    shutil.copy2(os.path.realpath(shutil.which(program, path="/usr/bin:/bin")), to)
    return to


def link(text, at):
    os.makedirs(os.path.dirname(at), exist_ok=True)
    os.symlink(text, at)
    return at


def path_of(*dirs):
    return {"PATH": ":".join(dirs) + ":/usr/bin:/bin"}


def recipe(home, name, **places):
    """Keys of the repository's entry as docs/toolchains.md has them for this tool; places: what stands for a path of the page."""
    page = read(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/toolchains.md"))
    block = re.search(r"(?ms)^## %s$.*?^```yaml\n(.*?)^```" % name, page).group(1).replace("/home/you", home.home)
    for word, path in places.items():
        block = block.replace(word.replace("_", "/"), path)
    expose = re.search(r"^  expose: \[(.*)\]$", block, re.M)
    env = re.search(r"^env: \{(.*)\}$", block, re.M)
    found = {"expose": expose.group(1).split(", ")} if expose else {}
    if env:
        found["env"] = dict(pair.split(": ", 1) for pair in env.group(1).split(", "))
    return found


PY = os.path.basename(os.path.realpath(PYTHON))


def fake_uv_python(home):
    """A uv-managed interpreter: a real python, relocated, whose standard library is a link to the system's."""
    base = home.home + "/.local/share/uv/python/cpython-3-linux"
    copy(PYTHON, base + "/bin/" + PY)
    os.makedirs(base + "/lib")
    shutil.copytree("/usr/lib/" + PY, base + "/lib/" + PY, symlinks=True,
                    ignore=shutil.ignore_patterns("test", "__pycache__", "config-*", "idlelib", "tkinter", "ensurepip", "distutils"))
    link(PY, base + "/bin/python3")
    return base


def fake_venv(path, base):
    os.makedirs(path + "/lib/%s/site-packages" % PY)
    link(base + "/bin/" + PY, path + "/bin/python")
    link("python", path + "/bin/python3")
    write(path + "/pyvenv.cfg", "home = %s/bin\ninclude-system-site-packages = false\nversion = 3\n" % base)
    write(path + "/lib/%s/site-packages/sample_module.py" % PY, "def main():\n    print('module of the venv')\n")
    write(path + "/bin/sample-tool", "#!%s/bin/python\nfrom sample_module import main\nmain()\n" % path, 0o755)


@promise("OS-ENV-06", "a uv virtual environment in the worktree: its interpreter lies in the store, which expose names")
def _(t):
    home = Home()
    base = fake_uv_python(home)
    fake_venv(home.repo + "/.venv", base)
    git(home.repo, "add", "-Af")
    git(home.repo, "commit", "-qm", "venv")
    first = home.run(".venv/bin/python", "-c", "print(1)")
    t.works(first.code == 125 and "outside the sandbox's view; add its directory to the sandbox's expose list" in first.err,
            "without expose it is refused with the sentence", first)
    home.configure(**recipe(home, "uv"))
    result = home.run(".venv/bin/python", "-c", "import sys, sample_module, json; sample_module.main(); print(sys.prefix)")
    t.works(result.lines == ["module of the venv", home.worktree + "/.venv"], "with it, it works", result)
    script = home.run("sh", "-c", ".venv/bin/python -m json.tool --help >/dev/null && echo fine")
    t.works(script.out == "fine\n", "also below a shell", script)


@promise("OS-ENV-06", "a virtual environment outside the worktree: the command brings its prefix; an exposed bin/ alone fails to import")
def _(t):
    home = Home()
    base = fake_uv_python(home)
    fake_venv(home.home + "/venvs/one", base)
    env = path_of(home.home + "/venvs/one/bin")
    home.configure(expose=["~/.local/share/uv/python"])
    result = home.run("sample-tool", env=env)
    t.works(result.out == "module of the venv\n", "the prefix comes with the command", result)
    home.configure(expose=["~/.local/share/uv/python", "~/venvs/one/bin"])
    result = home.run("sample-tool", env=env)
    t.works(result.code != 0 and "sample_module" in result.err, "only its bin/: fails to import, as the page says", result)
    home.configure(expose=["~/.local/share/uv/python", "~/venvs/one"])
    t.works(home.run("sample-tool", env=env).out == "module of the venv\n", "the whole prefix works")


@promise("OS-ENV-06", "rustup and cargo: proxies in ~/.cargo/bin, toolchains by RUSTUP_HOME, no credentials")
def _(t):
    home = Home()
    proxy = write(home.home + "/.cargo/bin/rustup", "#!/bin/sh\nexec \"${RUSTUP_HOME:-$HOME/.rustup}/toolchains/stable/bin/$(basename \"$0\")\" \"$@\"\n", 0o755)
    for name in ("cargo", "rustc"):
        link("rustup", home.home + "/.cargo/bin/" + name)
        write(home.home + "/.rustup/toolchains/stable/bin/" + name, "#!/bin/sh\necho %s 1.80 home=${CARGO_HOME:-unset}; cat \"$(dirname \"$0\")/../lib/std\"\n" % name, 0o755)
    write(home.home + "/.rustup/toolchains/stable/lib/std", "std\n")
    write(home.home + "/.cargo/credentials.toml", "token = 'secret'")
    write(home.home + "/.cargo/config.toml", "registry token")
    env = path_of(home.home + "/.cargo/bin")
    home.configure(**recipe(home, "rustup"))
    result = home.run("cargo", "--version", env=env)
    t.works(result.out == "cargo 1.80 home=unset\nstd\n", "the recipe of the page works", result)
    look = home.run("sh", "-c", "cat %s/.cargo/config.toml %s/.cargo/credentials.toml; cargo | head -1" % (home.home, home.home), env=env)
    t.works("secret" not in look.out and "registry" not in look.out and "cargo 1.80" in look.out, "the rest of ~/.cargo is not shown", look)
    home.configure(env={"RUSTUP_HOME": home.home + "/.rustup"}, expose=["~/.rustup"])
    widened = home.run("cargo", "--version", env=env)
    t.works(widened.code == 0, "without expose the whole ~/.cargo comes", widened)
    home.configure()
    plain = home.run("cargo", "--version", env=env)
    t.works(plain.code == 127, "without RUSTUP_HOME the toolchain is not found", plain, proxy)
    t.works("a command was not found inside the os sandbox; add its directory to the sandbox's expose list" in plain.err, "with the hint", plain)


@promise("OS-ENV-06", "a node under a version manager: the version's prefix is shown, its npm and global tools run")
def _(t):
    home = Home()
    version = home.home + "/.nvm/versions/node/v22.1.0"
    write(version + "/bin/node", "#!/bin/sh\nexec /bin/sh \"$@\"\n", 0o755)
    write(version + "/lib/node_modules/npm/bin/npm-cli.js", "#!/usr/bin/env node\necho npm $#; cat \"$(dirname \"$(readlink -f \"$0\")\")/../package.json\"\n", 0o755)
    write(version + "/lib/node_modules/npm/package.json", "{}\n")
    link("../lib/node_modules/npm/bin/npm-cli.js", version + "/bin/npm")
    write(version + "/lib/node_modules/tool/cli.js", "#!/usr/bin/env node\necho tool\n", 0o755)
    link("../lib/node_modules/tool/cli.js", version + "/bin/tool")
    write(home.home + "/.nvm/nvm.sh", "")
    write(home.home + "/.npmrc", "//registry/:_authToken=secret")
    env = path_of(version + "/bin")
    result = home.run("node", "-c", "echo node runs", env=env)
    t.works(result.out == "node runs\n", "node", result)
    result = home.run("npm", "test", env=env)
    t.works(result.out == "npm 1\n{}\n", "npm, through its link and env node", result)
    t.works(home.run("tool", env=env).out == "tool\n", "a global tool")
    look = home.run("sh", "-c", "cat %s/.npmrc; ls %s/.nvm" % (home.home, home.home), env=env)
    t.works("secret" not in look.out, "no .npmrc of the person", look)


@promise("OS-ENV-06", "pyenv: the shims need PYENV_ROOT and expose, as the page says of state under HOME")
def _(t):
    home = Home()
    root = home.home + "/.pyenv"
    write(root + "/libexec/pyenv", "#!/bin/sh\nshift; name=$1; shift; exec \"$PYENV_ROOT/versions/3.12.0/bin/$name\" \"$@\"\n", 0o755)
    link("../libexec/pyenv", root + "/bin/pyenv")
    write(root + "/shims/python", "#!/usr/bin/env bash\nset -e\nexport PYENV_ROOT=\"${PYENV_ROOT:-$HOME/.pyenv}\"\nexec \"$PYENV_ROOT/libexec/pyenv\" exec \"${0##*/}\" \"$@\"\n", 0o755)
    write(root + "/versions/3.12.0/bin/python", "#!/bin/sh\necho python of pyenv\n", 0o755)
    env = path_of(root + "/shims", root + "/bin")
    plain = home.run("python", env=env)
    t.works(plain.code in (125, 126, 127) and "expose" in plain.err, "plainly it fails, naming expose", plain)
    home.configure(**recipe(home, "pyenv"))
    result = home.run("python", env=env)
    t.works(result.out == "python of pyenv\n", "with both it works", result)


@promise("OS-ENV-06", "Java: the command comes with its own; a gradle wrapper needs JAVA_HOME and its home below the person's")
def _(t):
    home = Home()
    java, dist = home.home + "/.sdkman/candidates/java/21", home.home + "/.gradle/wrapper/dists/gradle-8"
    write(java + "/bin/java", "#!/bin/sh\ncat \"$(dirname \"$0\")/../lib/modules\" && echo java $*\n", 0o755)
    write(java + "/lib/modules", "modules\n")
    link("21", home.home + "/.sdkman/candidates/java/current")
    write(dist + "/bin/gradle", "#!/bin/sh\nexec \"$JAVA_HOME/bin/java\" gradle $*\n", 0o755)
    write(home.home + "/.gradle/gradle.properties", "password=secret")
    home.commit("gradlew", "#!/bin/sh\nexec \"${GRADLE_USER_HOME:-$HOME/.gradle}/wrapper/dists/gradle-8/bin/gradle\" \"$@\"\n")
    result = home.run("java", "-version", env=path_of(home.home + "/.sdkman/candidates/java/current/bin"))
    t.works(result.out == "modules\njava -version\n", "the command alone", result)
    plain = home.run("./gradlew", "test")
    t.works(plain.code == 127 and "expose" in plain.err, "plainly: not found, with the hint", plain)
    home.configure(**recipe(home, "Java"))
    result = home.run("./gradlew", "test")
    t.works(result.out == "modules\njava gradle test\n", "with the page's recipe it works", result)
    look = home.run("cat", home.home + "/.gradle/gradle.properties")
    t.works(look.code != 0 and "secret" not in look.out, "and the properties are not shown", look)


@promise("OS-ENV-06", "Go: a tool chain below the home directory comes with its command")
def _(t):
    home = Home()
    root = home.home + "/sdk/go1.22"
    write(root + "/bin/go", "#!/bin/sh\nroot=$(dirname \"$0\")/..; cat \"$root/src/std\"; mkdir -p \"$HOME/go/pkg\" && echo built in \"${HOME##*/}\"\n", 0o755)
    write(root + "/src/std", "std\n")
    result = home.run("go", "build", env=path_of(root + "/bin"))
    t.works(result.out.startswith("std\nbuilt in ") and not os.path.exists(home.home + "/go"), "it works plainly, its cache in the item's home", result)


@promise("OS-ENV-06", "a Nix-like store: a chain of links into a profile, a loader in the store")
def _(t):
    home = Home()
    store = home.root + "/nix/store"
    interp = copy("sh", store + "/aaa-bash-5/bin/bash")
    write(store + "/bbb-tool-1/bin/tool", "#!%s\necho nix tool; cat %s/ccc-lib-1/lib/data\n" % (interp, store), 0o755)
    write(store + "/ccc-lib-1/lib/data", "data\n")
    link(store + "/bbb-tool-1/bin", store + "/ddd-profile/bin")
    link(store + "/ddd-profile", home.root + "/nix/var/nix/profiles/profile-1-link")
    link("profile-1-link", home.root + "/nix/var/nix/profiles/profile")
    link(home.root + "/nix/var/nix/profiles/profile", home.home + "/.nix-profile")
    env = path_of(home.home + "/.nix-profile/bin")
    plain = home.run("tool", env=env)
    t.works("nix tool" in plain.out and plain.code != 0 or plain.code in (125, 126, 127), "plainly its library is missing", plain)
    home.configure(**recipe(home, "Nix", _nix_store=store))
    result = home.run("tool", env=env)
    t.works(result.out == "nix tool\ndata\n", "with the store exposed it works, under the profile's name", result)


@promise("OS-ENV-06", "a Homebrew-like prefix: bin/ links into the Cellar, a real ELF program with its own loader path")
def _(t):
    home = Home()
    prefix = home.root + "/linuxbrew/.linuxbrew"
    copy("env", prefix + "/Cellar/coreutils/9/bin/genv")
    link("../Cellar/coreutils/9/bin/genv", prefix + "/bin/genv")
    write(prefix + "/Cellar/tool/1/libexec/main", "#!/bin/sh\ncat %s/opt/tool/share/data\n" % prefix, 0o755)
    write(prefix + "/Cellar/tool/1/share/data", "brewed\n")
    link("../Cellar/tool/1", prefix + "/opt/tool")
    write(prefix + "/Cellar/tool/1/bin/tool", "#!/bin/sh\nexec %s/opt/tool/libexec/main\n" % prefix, 0o755)
    link("../Cellar/tool/1/bin/tool", prefix + "/bin/tool")
    env = path_of(prefix + "/bin")
    t.works(home.run("genv", "echo", "elf", env=env).out == "elf\n", "an ELF program that needs only system libraries")
    plain = home.run("tool", env=env)
    t.works(plain.code in (126, 127), "one that needs its opt/ link fails plainly", plain)
    home.configure(**recipe(home, "Homebrew", _home_linuxbrew_=prefix[:-len(".linuxbrew")]))
    t.works(home.run("tool", env=env).out == "brewed\n", "with the prefix exposed it works")


@promise("OS-ENV-06", "an npm-installed native CLI: bin link to a script to a binary in a package of its own")
def _(t):
    home = Home()
    prefix = home.home + "/.local"
    binary = copy("env", prefix + "/lib/node_modules/@vendor/cli/node_modules/@vendor/cli-linux-x64/bin/cli")
    write(prefix + "/lib/node_modules/@vendor/cli/bin/cli.js", "#!/bin/sh\nexec %s \"$@\"\n" % binary, 0o755)
    link("../lib/node_modules/@vendor/cli/bin/cli.js", prefix + "/bin/cli")
    write(prefix + "/share/keyrings/login.keyring", "secret")
    env = path_of(prefix + "/bin")
    plain = home.run("cli", "echo", "hello", env=env)
    look = plain.code == 125 and "cli" in plain.err
    t.works(look or plain.code in (126, 127) or plain.out == "hello\n", "~/.local holds the keyrings: never the whole of it", plain)
    home.configure(expose=["~/.local/lib/node_modules", "~/.local/bin"])
    result = home.run("cli", "echo", "hello", env=env)
    t.works(result.out == "hello\n", "with the narrow paths exposed it works", result)
    t.works(home.run("cat", prefix + "/share/keyrings/login.keyring", env=env).code != 0, "and the keyrings are not shown")


if __name__ == "__main__":
    main()
