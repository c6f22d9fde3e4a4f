// Reads requests as JSON lines from standard input: those that our client signed must verify with the official
// package, and all of them must fit the official OpenAPI files. Prints one line a kind of request; exits 1 otherwise.
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { validateSignature, validateSignatureHeaders } from "@interledger/http-signature-utils";
import { createOpenAPI } from "@interledger/openapi";

const require = createRequire(import.meta.url);
const specs = join(dirname(require.resolve("@interledger/open-payments")), "openapi", "specs");
const open = (name) => createOpenAPI(join(specs, `${name}.yaml`));
const [auth, resource, wallet] = await Promise.all([
  open("auth-server"),
  open("resource-server"),
  open("wallet-address-server"),
]);

// Which path of which file a request of our client belongs to.
const KINDS = [
  ["continue", "post", auth, "/continue/{id}", /^\/continue\/[^/]+$/],
  ["cancel", "delete", auth, "/continue/{id}", /^\/continue\/[^/]+$/],
  ["rotate", "post", auth, "/token/{id}", /^\/token\/[^/]+$/],
  ["revoke", "delete", auth, "/token/{id}", /^\/token\/[^/]+$/],
  ["create incoming payment", "post", resource, "/incoming-payments", /\/incoming-payments$/],
  ["list incoming payments", "get", resource, "/incoming-payments", /\/incoming-payments$/],
  ["get incoming payment", "get", resource, "/incoming-payments/{id}", /\/incoming-payments\/[^/]+$/],
  ["complete incoming payment", "post", resource, "/incoming-payments/{id}/complete", /\/complete$/],
  ["create quote", "post", resource, "/quotes", /\/quotes$/],
  ["get quote", "get", resource, "/quotes/{id}", /\/quotes\/[^/]+$/],
  ["create outgoing payment", "post", resource, "/outgoing-payments", /\/outgoing-payments$/],
  ["list outgoing payments", "get", resource, "/outgoing-payments", /\/outgoing-payments$/],
  ["get outgoing payment", "get", resource, "/outgoing-payments/{id}", /\/outgoing-payments\/[^/]+$/],
  ["get keys", "get", wallet, "/jwks.json", /\/jwks\.json$/],
  ["get wallet address", "get", wallet, "/", /./],
  ["grant", "post", auth, "/", /./],
];

// A validator is made once a path: making one adds to the specification it is made from.
const validators = new Map();
function validatorOf(spec, path, method) {
  const name = `${method} ${path}`;
  if (!validators.has(name)) validators.set(name, spec.createRequestValidator({ path, method }));
  return validators.get(name);
}

const counts = new Map();
let signed = 0;
for await (const line of createInterface({ input: process.stdin })) {
  const { method, url, headers, body, key } = JSON.parse(line);
  const { pathname, searchParams } = new URL(url);
  const kind = KINDS.find(([, verb, , , form]) => verb === method.toLowerCase() && form.test(pathname));
  if (!kind) throw new Error(`no such request in Open Payments: ${method} ${pathname}`);
  const [name, verb, spec, path] = kind;
  const lower = Object.fromEntries(Object.entries(headers).map(([k, v]) => [k.toLowerCase(), v]));
  if (lower.signature) {
    const request = { method, url, headers: lower, body: body ?? undefined };
    if (!validateSignatureHeaders(request) || !(await validateSignature(key, request)))
      throw new Error(`the signature of a ${name} request does not verify`);
    signed += 1;
  }
  const id = pathname.split("/").filter((part) => part && part !== "complete").at(-1);
  try {
    validatorOf(spec, path, verb)({
      headers: lower,
      params: path.includes("{id}") ? { id } : {},
      query: Object.fromEntries(searchParams),
      body: body === null ? undefined : JSON.parse(body),
    });
  } catch (refused) {
    throw new Error(`${method} ${url} ${body}: ${JSON.stringify(refused.errors ?? `${refused}`)}`);
  }
  counts.set(name, (counts.get(name) ?? 0) + 1);
}
for (const [name] of KINDS) console.log(`${counts.get(name) ?? 0} ${name}`);
console.log(`${signed} signatures verified`);
