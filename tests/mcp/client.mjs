// A client of the Model Context Protocol, as it is published, against http://kraft/mcp from inside a session. What it sees
// is one line of JSON. Words: which client, the protocol version it begins with (newest: its own way), the tool's input.
//
// Its requests go through the proxy as any HTTP request does: absolute form, by node's own http module, since fetch of this
// node looks at no proxy variable.
import http from "node:http";

const [which, version, input, cancelAfter] = process.argv.slice(2);
const seen = { requests: [], progress: [] };

// Not node's own adapter: that of node 18 closes a stream a second time when its reader has left it.
function streamed(response) {
	let over = false;
	const end = (then) => {
		if (!over) {
			over = true;
			then();
		}
	};
	return new ReadableStream({
		start(controller) {
			response.on("data", (bytes) => over || controller.enqueue(new Uint8Array(bytes)));
			response.on("end", () => end(() => controller.close()));
			response.on("error", (why) => end(() => controller.error(why)));
			response.on("close", () => end(() => controller.error(new Error("the answer was cut off"))));
		},
		cancel() {
			over = true;
			response.destroy();
		},
	});
}

function proxied(url, init = {}) {
	return new Promise((resolve, reject) => {
		const headers = Object.fromEntries(new Headers(init.headers));
		const request = http.request({ host: "127.0.0.1", port: 3128, method: init.method ?? "GET", path: String(url),
			headers: { ...headers, host: "kraft", ...(init.body ? { "content-length": Buffer.byteLength(init.body) } : {}) } }, (response) => {
			seen.requests.push([init.method ?? "GET", headers["mcp-protocol-version"] ?? null, headers["mcp-method"] ?? null, response.statusCode]);
			const nothing = [202, 204, 304].includes(response.statusCode);
			if (nothing)
				response.resume();
			resolve(new Response(nothing ? null : streamed(response), { status: response.statusCode, headers: response.headers }));
		});
		request.on("error", reject);
		init.signal?.addEventListener("abort", () => request.destroy(new DOMException("aborted", "AbortError")));
		request.end(init.body);
	});
}

async function load() {
	if (which === "client-new") {
		const { Client, StreamableHTTPClientTransport } = await import("client-new");
		return { Client, StreamableHTTPClientTransport };
	}
	const { Client } = await import(`${which}/client/index.js`);
	const { StreamableHTTPClientTransport } = await import(`${which}/client/streamableHttp.js`);
	return { Client, StreamableHTTPClientTransport };
}

globalThis.fetch = proxied; // the old one takes no other
const { Client, StreamableHTTPClientTransport } = await load();
const options = which === "client-new" && version === "newest" ? { versionNegotiation: { mode: "auto" } } : {};
const client = new Client({ name: "kraft-test", version: "1" }, { capabilities: {}, ...options });
const transport = new StreamableHTTPClientTransport(new URL("http://kraft/mcp"));
await client.connect(transport);
seen.server = client.getServerVersion?.() ?? null;
seen.version = client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion ?? transport._protocolVersion ?? null;
seen.tools = (await client.listTools()).tools.map((tool) => tool.name);
try {
	const abort = new AbortController();
	if (cancelAfter)
		setTimeout(() => abort.abort("enough"), Number(cancelAfter));
	const call = { name: "permission_request", arguments: { tool_name: "Bash", input: JSON.parse(input), tool_use_id: "toolu_1" } };
	const more = { onprogress: (p) => seen.progress.push(p), resetTimeoutOnProgress: true, timeout: 15000, signal: abort.signal };
	const result = await (which === "client-new" ? client.callTool(call, more) : client.callTool(call, undefined, more));
	seen.answer = JSON.parse(result.content[0].text);
} catch (why) {
	seen.error = String(why);
}
try {
	await client.callTool({ name: "Bash", arguments: {} });
} catch (why) {
	seen.other = why.code ?? String(why);
}
await client.close();
process.stdout.write(JSON.stringify(seen) + "\n");
process.exit(0);
