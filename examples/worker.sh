#!/bin/sh
# A worker without an agent: what the README's session files an item with. It reads what is asked, tells how far it is, asks for
# permission by MCP, does its work and commits it, and answers its reviewer. In policy.yaml:
#     defaults: {ask_tools: [Deploy]}
asked=$(cat)
kraft item progress 1
case $asked in *French*) text=bonjour ;; *) text=hello ;; esac
ask() {
    curl -sS -N http://kraft/mcp -H 'content-type: application/json' -H 'accept: application/json, text/event-stream' \
        -d '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"permission_request","arguments":{"tool_name":"Deploy","input":{"text":"'$text'"},"tool_use_id":"t1"}}}'
}
case $(ask) in
*'"behavior\":\"allow'* | *'\"behavior\": \"allow'*) ;;
*) echo "nobody allowed it" >&2; exit 1 ;;
esac
echo $text >greeting
git add greeting
git commit -qm "a greeting: $text"
kraft item progress 2
for thread in $(kraft view threads --open | sed -n 's/.*"id": *"\(t[0-9a-f]*\)".*/\1/p'); do
    kraft item reply "$thread" --body "it says $text now" --claim fixed
done
