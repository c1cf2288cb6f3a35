// The official TypeScript client, at the other end of a pipe: one JSON line a request, one a reply.
//
// node client.mjs MODULES '{"era": "legacy|auto|modern", "agrees": true, "url": .., "token": ..}'
// node client.mjs MODULES '{"era": .., "agrees": false, "command": .., "args": [..], "env": {..}, "cwd": ..}'
import { createRequire } from 'node:module';
import path from 'node:path';
import readline from 'node:readline';
import { pathToFileURL } from 'node:url';

const [modules, told] = process.argv.slice(2);
const wanted = JSON.parse(told);
const found = createRequire(path.join(modules, 'from-here.js'));
const load = (name) => import(pathToFileURL(found.resolve(name)).href);
const { Client, StreamableHTTPClientTransport } = await load('@modelcontextprotocol/client');
const { StdioClientTransport } = await load('@modelcontextprotocol/client/stdio');

const mode = wanted.era === 'modern' ? { pin: '2026-07-28' } : wanted.era;
const capabilities = wanted.agrees ? { elicitation: { form: {} } } : {};
const client = new Client({ name: 'typescript', version: '1' }, { capabilities, versionNegotiation: { mode } });

// A person who agrees to everything, and says yes wherever that can be said.
const asked = [];
const yes = { boolean: true, string: 'agreed', integer: 1, number: 1 };
const answer = (field) => field.enum?.[0] ?? field.oneOf?.[0].const ?? yes[field.type];
if (wanted.agrees) {
  client.setRequestHandler('elicitation/create', (request) => {
    asked.push(request.params.message);
    const fields = Object.entries(request.params.requestedSchema.properties);
    return { action: 'accept', content: Object.fromEntries(fields.map(([name, field]) => [name, answer(field)])) };
  });
}

function transport() {
  if (wanted.url === undefined) {
    return new StdioClientTransport({ ...wanted, stderr: 'inherit' });
  }
  const headers = { Authorization: `Bearer ${wanted.token}` };
  return new StreamableHTTPClientTransport(new URL(wanted.url), { requestInit: { headers } });
}

const deeds = {
  tools: async () => (await client.listTools()).tools,
  resources: async () => (await client.listResources()).resources,
  prompts: async () => (await client.listPrompts()).prompts,
  read: async ({ uri }) => (await client.readResource({ uri })).contents,
  call: (params) => client.callTool(params),
  asked: () => asked,
};

const say = (reply) => process.stdout.write(`${JSON.stringify(reply)}\n`);
await client.connect(transport());
say({ result: { version: client.getNegotiatedProtocolVersion(), server: client.getServerVersion() } });
for await (const line of readline.createInterface({ input: process.stdin })) {
  const { deed, params } = JSON.parse(line);
  try {
    say({ result: await deeds[deed](params) });
  } catch (error) {
    say({ error: { code: error.code, message: error.message } });
  }
}
await client.close();
