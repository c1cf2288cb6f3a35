/* Writes src/core/contract.ts from the API's own description, so that pages can't ask for what is not there.
 * npm run contract [PATH-OF-OPENAPI.JSON] */
import { readFileSync, writeFileSync } from 'node:fs';

const api = JSON.parse(readFileSync(process.argv[2] ?? new URL("../src/handrail/interfaces/http/openapi.json", import.meta.url), 'utf8'));
const schemas = api.components.schemas;

function typed(schema) {
  if (schema.$ref) return schema.$ref.split('/').pop();
  if (schema.enum) return schema.enum.map((one) => JSON.stringify(one)).join(' | ');
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.anyOf) return [...new Set(schema.anyOf.map(typed))].join(' | ');
  switch (schema.type) {
    case 'string':
      return 'string';
    case 'integer':
    case 'number':
      return 'number';
    case 'boolean':
      return 'boolean';
    case 'null':
      return 'null';
    case 'array':
      if (schema.prefixItems) return `readonly [${schema.prefixItems.map(typed).join(', ')}]`;
      return `readonly ${wrapped(typed(schema.items ?? {}))}[]`;
    case 'object':
      if (schema.properties) return shape(schema);
      return `Readonly<Record<string, ${typed(schema.additionalProperties || {})}>>`;
    default:
      return 'any';
  }
}

const wrapped = (text) => (/[ |]/.test(text) ? `(${text})` : text);

function shape(schema) {
  const needed = new Set(schema.required ?? []);
  const lines = Object.entries(schema.properties).map(([name, one]) => `  ${/^\w+$/.test(name) ? name : JSON.stringify(name)}${needed.has(name) ? '' : '?'}: ${typed(one)};`);
  return `{\n${lines.join('\n')}\n}`;
}

const parts = ['/* Written by types.mjs from the OpenAPI document; not by hand. */'];
for (const name of Object.keys(schemas).sort()) {
  if (name.endsWith('Query') || name === 'Nothing') continue;
  const schema = schemas[name];
  parts.push(schema.properties ? `export interface ${name} ${shape(schema)}` : `export type ${name} = ${typed(schema)};`);
}
writeFileSync(new URL('src/core/contract.ts', import.meta.url), `${parts.join('\n\n')}\n`);
