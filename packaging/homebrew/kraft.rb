# Homebrew's recipe for kraft, from a release's tarball. url and sha256 are filled in by whoever makes the release: there is none
# yet, and nobody has built this on a Mac. tests/docs looks that the libraries are those of meson.build.
class Kraft < Formula
  desc "Runs coding agents and commands behind walls, and takes their work out"
  homepage "https://kraft.example/"
  url "https://kraft.example/kraft-0.1.0.tar.gz"
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license "Apache-2.0"

  depends_on "meson" => :build
  depends_on "ninja" => :build
  depends_on "pkgconf" => :build
  depends_on "scdoc" => :build
  depends_on "jansson"
  depends_on "libxcrypt"
  depends_on "libyaml"
  depends_on "llhttp"
  depends_on "sqlite"

  def install
    system "meson", "setup", "build", "-Dtests=false", *std_meson_args
    system "meson", "compile", "-C", "build"
    system "meson", "install", "-C", "build"
    pkgshare.install "share/launchd/com.kraft.server.plist"
  end

  # No `service` block: what it makes has no AbandonProcessGroup, and items would end with the server.
  def caveats
    <<~EOS
      A server that launchd keeps: see AS A SERVICE in kraft-admin(1), with
        #{opt_pkgshare}/com.kraft.server.plist
      Workers see nothing of #{HOMEBREW_PREFIX} unless repos.yaml says expose: [#{HOMEBREW_PREFIX}].
    EOS
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/kraft --version")
  end
end
