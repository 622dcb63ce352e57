/*
 * Rows about kind: docker: the runtime and what it can enforce, the image, the extra CA, and what leads out
 * of a container. Each asks what a launch asks (backend/container.h); the runtime is asked once for all
 * repositories.
 */
#include "cli/doctor.h"

#include "os/host.h"
#include "run/kit.h"

/* ---- once for this host ---- */

static void
check_ca(struct kr_doctor *d, const struct kr_sandbox_file *file)
{
	struct kr_error err = { 0 };
	struct kr_ca ca;

	if (kr_ca_extra(d->arena, &d->host, file, &ca, &err) < 0)
		kr_doctor_add_error(d, "ca", &err);
	else if (ca.ignored)
		kr_doctor_add(d, "ca", KR_VERDICT_WARN,
			"correct SSL_CERT_FILE, or name the file in sandbox.yaml: 'ca_bundle'",
			"SSL_CERT_FILE is ignored for containers: %s", ca.ignored);
	else if (ca.path)
		kr_doctor_add(d, "ca", KR_VERDICT_OK, "", "every container trusts '%s' as well", ca.path);
}

static void
check_relay_image(struct kr_doctor *d, const struct kr_sandbox_file *file)
{
	if (file->relay_image)
		kr_doctor_add(d, "relay_image", KR_VERDICT_SKIP, "take the key out",
			"%s:%u:%u: not needed: kraft has no relay container", file->file, file->relay_image_mark.line,
			file->relay_image_mark.column);
}

static void
check_flaws(struct kr_doctor *d, const struct kr_runtime *runtime)
{
	static const struct {
		const char *row, *detail, *fix;
	} flaws[] = {
		[KR_FLAW_DEV_LINK] = { "runc",
			"runc before 1.2 makes /dev/ptmx through a link that an image has at /dev, here as root: into a "
			"directory of this host",
			"install runc 1.2 or later, or crun, or name a rootless podman or docker in sandbox.yaml: "
			"'cli'" },
		[KR_FLAW_LONG_RUNROOT] = { "runroot",
			"podman's runroot is longer than 50 characters, so its clean-up fails and ended containers stay",
			"give podman a shorter one: 'runroot' in storage.conf, and XDG_RUNTIME_DIR for a rootless "
			"podman" },
	};
	_Static_assert(KR_COUNT(flaws) == KR_FLAW_COUNT, "one for each flaw");

	for (size_t i = 0; i < KR_COUNT(flaws); i++)
		if (runtime->flaws & 1u << i)
			kr_doctor_add(d, flaws[i].row, KR_VERDICT_WARN, flaws[i].fix, "%s", flaws[i].detail);
}

/* What sandbox.yaml and the runtime say. */
static void
ask(struct kr_doctor *d, struct kr_doctor_runtime *seen)
{
	struct kr_error err = { 0 };

	if (kr_sandbox_file_load(d->arena, &d->host.places, &seen->file, &err) < 0) {
		kr_doctor_add_error(d, "sandbox.yaml", &err);
		return;
	}
	seen->has_file = true;
	check_ca(d, &seen->file);
	check_relay_image(d, &seen->file);
	if (kr_runtime_find(d->arena, &d->host, &seen->file, &seen->runtime, &seen->why) < 0) {
		kr_doctor_add_error(d, "runtime", &seen->why);
		return;
	}
	seen->has_runtime = true;
	kr_doctor_add(d, "runtime", KR_VERDICT_OK, "", "%s at '%s'", seen->runtime.name, seen->runtime.program);
	check_flaws(d, &seen->runtime);
}

/* At the first repository that needs it, though the rows are the host's. */
static const struct kr_doctor_runtime *
ask_once(struct kr_doctor *d)
{
	const char *repo = d->repo;

	if (d->runtime)
		return d->runtime;
	d->runtime = kr_arena_new(d->arena, struct kr_doctor_runtime);
	d->repo = NULL;
	ask(d, d->runtime);
	d->repo = repo;
	return d->runtime;
}

/* ---- of each repository ---- */

static void
check_image(struct kr_doctor *d, const struct kr_repo *repo, const struct kr_runtime *runtime)
{
	struct kr_error err = { 0 };
	struct kr_image image;

	if (kr_image_look(d->arena, runtime, repo->sandbox.image, &image, &err) < 0)
		kr_doctor_add_error(d, "sandbox", &err);
	else if (!image.id)
		kr_doctor_add(d, "sandbox", KR_VERDICT_WARN,
			kr_arena_printf(d->arena, "'%s pull %s' fetches it now", runtime->program, repo->sandbox.image),
			"%s at '%s'; the image '%s' is not here, and is pulled at the first task", runtime->name,
			runtime->program, repo->sandbox.image);
	else
		kr_doctor_add(d, "sandbox", KR_VERDICT_OK, "", "%s at '%s' with '%s' (%s, %.19s)", runtime->name,
			runtime->program, repo->sandbox.image, image.architecture, image.id);
}

static void
check_sandbox(struct kr_doctor *d, const struct kr_repo *repo)
{
	const struct kr_doctor_runtime *seen = ask_once(d);
	struct kr_error err = { 0 };

	if (!seen->has_file)
		kr_doctor_add(d, "sandbox", KR_VERDICT_SKIP, "", "without a sandbox.yaml that loads it cannot be asked");
	else if (!seen->has_runtime)
		kr_doctor_add_error(d, "sandbox", &seen->why);
	else if (kr_runtime_check(&seen->runtime, &repo->sandbox, seen->file.selinux, &err) < 0)
		kr_doctor_add_error(d, "sandbox", &err);
	else
		check_image(d, repo, &seen->runtime);
}

/* CHN-11, CTR-11 */
static void
check_egress(struct kr_doctor *d, const struct kr_repo *repo)
{
	if (repo->sandbox.network.is_set)
		kr_doctor_add(d, "egress", KR_VERDICT_OK, "", "only what 'network' names, through kraft");
	else if (repo->sandbox.unrestricted_network)
		kr_doctor_add(d, "egress", KR_VERDICT_WARN,
			"name the hosts in 'network' in place of 'unrestricted_network'",
			"workers reach everything that this host reaches, and cannot call kraft");
	else
		kr_doctor_add(d, "egress", KR_VERDICT_FAIL,
			"name the hosts in 'network', or write 'unrestricted_network: true'",
			"neither 'network' nor 'unrestricted_network', so every launch is refused");
}

static void
check_proxy(struct kr_doctor *d, const struct kr_repo *repo)
{
	static const char *const variables[] = { "http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY",
		"HTTPS_PROXY", "ALL_PROXY" };

	for (size_t i = 0; i < KR_COUNT(variables) && repo->sandbox.unrestricted_network; i++) {
		const char *value = kr_host_env(&d->host, variables[i]);

		if (!value || !kr_proxy_is_loopback(value))
			continue;
		kr_doctor_add(d, "proxy", KR_VERDICT_WARN,
			"have the proxy listen on an address that containers reach, or give the repository a 'network'",
			"%s points at this host's loopback, which a container does not reach; it is left out there",
			variables[i]);
		return;
	}
}

/* What is kept of its kit, in the repository's place; NULL when nothing more can be asked. */
static const struct kr_repo *
check_kit(struct kr_doctor *d, const struct kr_repo *repo)
{
	struct kr_run_kit kit = { 0 };
	struct kr_error err = { 0 };

	if (repo->sandbox.kind != KR_SANDBOX_KIT)
		return repo;
	if (!ask_once(d)->has_file) {
		kr_doctor_add(d, "kit", KR_VERDICT_SKIP, "", "without a sandbox.yaml that loads it cannot be asked");
		return NULL;
	}
	if (kr_run_kit_find(d->arena, &d->host, false, -1, &repo, &kit, &err) < 0) {
		if (err.code == KR_E_NOT_FOUND)
			kr_doctor_add(d, "kit", KR_VERDICT_WARN, err.hint, "%s", err.message);
		else
			kr_doctor_add_error(d, "kit", &err);
		return NULL;
	}
	kr_doctor_add(d, "kit", KR_VERDICT_OK, "", "'%s': %zu hosts of its sessions, %zu credentials, %zu wishes skipped",
		kit.kit.name, kit.kit.network.phase[KR_PHASE_RUNTIME].allow.n, kit.kit.credential_count, kit.kit.skipped.n);
	return repo;
}

/* What a launch refuses, before it does; an entry that a harness completes is only needed by that one. */
static void
check_credentials(struct kr_doctor *d, const struct kr_repo *repo)
{
	const size_t count = repo->sandbox.credential_count;
	struct kr_error err = { 0 };
	size_t well = 0;

	if (!count)
		return;
	if (!kr_host_egress_tls_program(d->arena, &d->host, &err)) {
		kr_doctor_add_error(d, "credentials", &err);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		const struct kr_credential *one = &repo->sandbox.credentials[i];
		const char *fault = kr_plan_secret_fault(kr_host_env(&d->host, one->source));

		if (fault)
			kr_doctor_add(d, "credentials", one->inject_count ? KR_VERDICT_FAIL : KR_VERDICT_WARN,
				kr_arena_printf(d->arena, "set %s in the environment that runs kraft", one->source),
				"%s of the credential '%s' %s here", one->source, one->env, fault);
		well += !fault;
	}
	if (well == count)
		kr_doctor_add(d, "credentials", KR_VERDICT_OK, "", "%zu secret%s, each with a value here", count, count == 1 ? "" : "s");
}

void
kr_doctor_container(struct kr_doctor *d, const struct kr_repo *repo)
{
	repo = check_kit(d, repo);
	if (!repo)
		return;
	check_sandbox(d, repo);
	check_egress(d, repo);
	check_credentials(d, repo);
	check_proxy(d, repo);
}
