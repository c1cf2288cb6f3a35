/** A form made from JSON Schemas: what a workflow takes, or what a question asks for. */
import type { JSX } from 'preact';
import { capital, spaced } from '../core/words';

export interface Schema {
  type?: string | readonly string[];
  title?: string;
  description?: string;
  default?: unknown;
  enum?: readonly unknown[];
  pattern?: string;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  format?: string;
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: readonly string[];
}

const typeOf = (schema: Schema): string => (Array.isArray(schema.type) ? schema.type.find((one) => one !== 'null') : schema.type) as string ?? 'string';

interface FieldsProps {
  schema: Schema;
  values: Record<string, unknown>;
  onChange: (values: Record<string, unknown>) => void;
}

export function Fields({ schema, values, onChange }: FieldsProps): JSX.Element {
  const required = new Set(schema.required ?? []);
  return (
    <div class="stack" style={{ gap: '12px', marginBottom: '12px' }}>
      {Object.entries(schema.properties ?? {}).map(([name, one]) => (
        <Field key={name} name={name} schema={one} required={required.has(name)} value={values[name]} onChange={(value) => onChange({ ...values, [name]: value })} />
      ))}
    </div>
  );
}

function Field({ name, schema, required, value, onChange }: { name: string; schema: Schema; required: boolean; value: unknown; onChange: (value: unknown) => void }): JSX.Element {
  const id = `in-${name}`;
  const type = typeOf(schema);
  const about = schema.description ?? schema.title ?? '';
  const label = about && about.length < 70 ? capital(about) : capital(spaced(name));
  const fallback = fallbackOf(schema);
  const note = `${name}, ${required ? 'required' : 'optional'}${type === 'array' ? ', one a line' : type === 'object' ? ', JSON' : ''}`;
  const common = { id, required, 'aria-describedby': about.length >= 70 ? `${id}-about` : undefined };
  const shown = value === undefined ? '' : String(value);
  const long = type === 'array' || type === 'object' || (type === 'string' && !schema.pattern && !schema.format && (schema.maxLength ?? 1_000) > 120);
  let control: JSX.Element;
  if (schema.enum) {
    control = (
      <select {...common} value={shown} onChange={(event) => onChange(event.currentTarget.value)}>
        <option value="">{fallback ? `${fallback} (default)` : 'Choose'}</option>
        {schema.enum.map((one) => (
          <option key={String(one)} value={String(one)}>
            {String(one)}
          </option>
        ))}
      </select>
    );
  } else if (type === 'boolean') {
    control = (
      <select {...common} value={shown} onChange={(event) => onChange(event.currentTarget.value)}>
        <option value="">{fallback ? `${fallback === 'true' ? 'yes' : 'no'} (default)` : 'Choose'}</option>
        <option value="true">yes</option>
        <option value="false">no</option>
      </select>
    );
  } else if (long) {
    control = <textarea {...common} rows={type === 'string' ? 2 : 3} value={shown} placeholder={fallback} onInput={(event) => onChange(event.currentTarget.value)} />;
  } else {
    const typed = { ...common, value: shown, placeholder: fallback || (schema.pattern ? `fits ${schema.pattern}` : ''), onInput: (event: InputEvent) => onChange((event.currentTarget as HTMLInputElement).value) };
    control = type === 'integer' || type === 'number' ? <input {...typed} type="number" step={type === 'number' ? 'any' : undefined} min={schema.minimum} max={schema.maximum} /> : <input {...typed} type="text" />;
  }
  return (
    <div class="field">
      <label for={id}>
        {label} <span>{note}</span>
      </label>
      {control}
      {about.length >= 70 ? (
        <p class="meta" id={`${id}-about`}>
          {about}
        </p>
      ) : null}
    </div>
  );
}

/** The default, as somebody would type it. */
function fallbackOf({ default: value }: Schema): string {
  if (value === undefined) return '';
  if (Array.isArray(value) && value.every((one) => typeof one === 'string')) return value.join('\n');
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** What was typed, as values: an empty field is left out, so that its default counts. The server checks them. */
export function filled(schema: Schema, values: Record<string, unknown>): Record<string, unknown> {
  const result: Record<string, unknown> = {};
  for (const [name, one] of Object.entries(schema.properties ?? {})) {
    const text = values[name];
    if (text === undefined || text === '') continue;
    result[name] = parsed(String(text), one);
  }
  return result;
}

function parsed(text: string, schema: Schema): unknown {
  switch (typeOf(schema)) {
    case 'integer':
    case 'number':
      return Number(text);
    case 'boolean':
      return text === 'true';
    case 'object':
      return json(text);
    case 'array':
      if (text.trim().startsWith('[')) return json(text);
      return text
        .split('\n')
        .map((line) => line.trim())
        .filter(Boolean)
        .map((line) => parsed(line, schema.items ?? {}));
    default:
      return text;
  }
}

function json(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text; // the server says what is wrong with it
  }
}
