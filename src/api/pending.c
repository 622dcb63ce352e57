#include <unistd.h>
#include <sys/socket.h>
#include "api/api.h"
int kr_access_load(struct kr_arena *arena, const struct kr_places *places, struct kr_access *out, struct kr_error *err)
{ (void)arena;(void)places;(void)err; *out=(struct kr_access){.bind="127.0.0.1",.port=8765,.session_expiry_days=7}; return 0; }
int kr_access_check(const struct kr_access *a, struct kr_error *err) { (void)a;(void)err; return 0; }
void kr_api_connection(const struct kr_api *api, int fd)
{ char b[1000]; (void)api; (void)!read(fd,b,sizeof b); dprintf(fd,"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{\"status\":\"ok\",\"pid\":%d,\"reattach_summary\":{\"scanned\":%u,\"adopted\":%u,\"resumed\":%u}}", api->health.pid, api->health.scanned, api->health.adopted, api->health.resumed); close(fd); }
int kr_api_token(struct kr_arena *arena, const struct kr_places *places, const char **out, struct kr_error *err)
{ (void)arena;(void)places;(void)err; *out="x"; return 0; }
