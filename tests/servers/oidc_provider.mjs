// An authorization server of somebody else's make, for one MCP server: node oidc_provider.mjs PORT RESOURCE SECONDS
//
// Wants PKCE, takes clients that introduce themselves, rotates refresh tokens, and gives access tokens that live for
// so many seconds. `mcp-server` may introspect them. POST /withdraw ends every grant, as a person does in their account.
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [port, resource, seconds] = process.argv.slice(2);
const require = createRequire(join(process.cwd(), "package.json"));
const { default: Provider, errors } = await import(pathToFileURL(require.resolve("oidc-provider")));

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [
    {
      client_id: "mcp-server",
      client_secret: "introspects-tokens",
      redirect_uris: [],
      grant_types: [],
      response_types: [],
    },
  ],
  scopes: ["openid", "offline_access", "read", "count"],
  pkce: { required: () => true },
  rotateRefreshToken: true,
  cookies: { keys: ["a key of this test alone"] },
  features: {
    devInteractions: { enabled: true },
    registration: { enabled: true },
    revocation: { enabled: true },
    introspection: { enabled: true, allowedPolicy: () => true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo(ctx, indicator) {
        if (indicator !== resource) throw new errors.InvalidTarget();
        return {
          scope: "read count",
          audience: resource,
          accessTokenFormat: "opaque",
          accessTokenTTL: Number(seconds),
        };
      },
    },
  },
});

const grants = new Set();
let renewals = 0;
provider.on("grant.success", (ctx) => {
  grants.add(ctx.oidc.entities.Grant.jti);
  renewals += ctx.oidc.params.grant_type === "refresh_token" ? 1 : 0;
});
provider.on("server_error", (ctx, error) => console.error(error));
provider.use(async (ctx, next) => {
  if (ctx.path === "/withdraw" && ctx.method === "POST") {
    for (const id of grants) {
      await provider.AccessToken.revokeByGrantId(id);
      await provider.RefreshToken.revokeByGrantId(id);
      await (await provider.Grant.find(id))?.destroy();
    }
    ctx.body = "";
  } else if (ctx.path === "/renewals") {
    ctx.body = String(renewals);
  } else {
    await next();
  }
});
provider.listen(Number(port), "127.0.0.1", () => console.log("listening"));
