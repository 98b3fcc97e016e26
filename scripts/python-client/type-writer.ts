import { docstring, isName, pascalCase, quoted, snakeCase } from './names.ts';

/** The part of JSON Schema that the document uses. */
export type Schema = {
  $ref?: string;
  type?: string | string[];
  anyOf?: Schema[];
  enum?: unknown[];
  const?: unknown;
  format?: string;
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: boolean | Schema;
  description?: string;
};

/** Objects of the upstream platform: they stay the dict that came, so that nothing that upstream changes is an error. */
const UPSTREAM = new Set([
  'CustomerContact',
  'InboundMessage',
  'PhoneNumberMetadata',
  'UpstreamAmount',
  'UpstreamStatus',
  'OrderEventDataOrder',
  'OrderEventDataServiceItemsItem',
  'PaymentEventDataTransaction',
]);

/** Whatever a member can be: its type has no name of Python for it, only a catch-all. */
const CATCH_ALL = new Set(['SendNewType', 'SendInteractiveNewType']);

/**
 * Writes the types of schemas. Responses and events are models of pydantic with names in snake_case, which take what
 * they do not know. Bodies of requests are typed dicts: the JSON of the API as it is documented.
 */
export class TypeWriter {
  readonly #components: Record<string, Schema>;
  readonly #kind: 'models' | 'requests';
  readonly #written = new Map<string, string>();

  constructor(components: Record<string, Schema>, kind: 'models' | 'requests') {
    this.#components = components;
    this.#kind = kind;
  }

  /** The names of the classes and the text of all of them. */
  get classes(): ReadonlyMap<string, string> {
    return new Map([...this.#written].toSorted(([a], [b]) => (a < b ? -1 : 1)));
  }

  /** The type of a schema; an object without a name of its own gets `name`. */
  typeOf(schema: Schema, name: string): string {
    if (schema.$ref !== undefined) return this.#component(schema.$ref.split('/').at(-1) ?? '');
    if (schema.anyOf !== undefined) return this.#union(schema.anyOf, name);
    if (schema.const !== undefined) return `Literal[${literal(schema.const)}]`;
    if (schema.enum !== undefined) {
      const known = `Literal[${schema.enum.map(literal).join(', ')}]`;
      // Responses may have values that came later than this client.
      return this.#kind === 'models' ? `${known} | str` : known;
    }
    if (Array.isArray(schema.type))
      return this.#union(
        schema.type.map((type) => ({ type })),
        name,
      );
    return this.#plain(schema, name);
  }

  #plain(schema: Schema, name: string): string {
    switch (schema.type) {
      case 'string':
        return schema.format === 'date-time' ? this.#time() : 'str';
      case 'integer':
        return 'int';
      case 'number':
        return 'float';
      case 'boolean':
        return 'bool';
      case 'null':
        return 'None';
      case 'array':
        return `list[${this.typeOf(schema.items ?? {}, `${name}Item`)}]`;
      case 'object':
        return this.#object(schema, name);
      default:
        return 'Any';
    }
  }

  #time(): string {
    return this.#kind === 'models' ? 'datetime' : 'datetime | str';
  }

  #union(schemas: readonly Schema[], name: string): string {
    const types = schemas
      .filter(({ $ref }) => !CATCH_ALL.has($ref?.split('/').at(-1) ?? ''))
      .flatMap((schema) => this.typeOf(schema, name).split(/ \| (?![^[]*\])/));
    return [...new Set(types)].join(' | ');
  }

  #component(name: string): string {
    if (this.#kind === 'models' && UPSTREAM.has(name)) return 'dict[str, Any]';
    const schema = this.#components[name];
    if (schema === undefined) throw new Error(`the document has no schema ${name}`);
    if (schema.type === 'object') return this.#object(schema, name);
    if (!this.#written.has(name)) {
      this.#written.set(name, '');
      // Written as text: an alias is made when the module is loaded, before the classes that it names.
      this.#written.set(name, `${name}: TypeAlias = ${quoted(this.typeOf(schema, name))}`);
    }
    return name;
  }

  #object(schema: Schema, name: string): string {
    const { properties = {}, additionalProperties } = schema;
    const isUpstreams = this.#kind === 'models' && UPSTREAM.has(name);
    if (isUpstreams) return 'dict[str, Any]';
    if (Object.keys(properties).length === 0) {
      const values =
        typeof additionalProperties === 'object' ? this.typeOf(additionalProperties, `${name}Value`) : 'Any';
      return `dict[str, ${values}]`;
    }
    if (!this.#written.has(name)) {
      this.#written.set(name, '');
      this.#written.set(name, this.#kind === 'models' ? this.#model(schema, name) : this.#dict(schema, name));
    }
    return name;
  }

  #model({ properties = {}, required = [], description }: Schema, name: string): string {
    const members = Object.entries(properties).flatMap(([key, schema]) => {
      const type = this.typeOf(schema, `${name}${pascalCase(key)}`);
      const field = snakeCase(key);
      const isRequired = required.includes(key);
      const settings = [
        ...(isRequired ? [] : ['default=None']),
        ...(field === key ? [] : [`alias=${quoted(key)}`]),
      ];
      const value = settings.length === 0 ? '' : ` = Field(${settings.join(', ')})`;
      const written = isRequired || type.endsWith('None') || type === 'Any' ? type : `${type} | None`;
      return [
        `    ${field}: ${written}${value}`,
        ...(schema.description === undefined ? [] : [docstring(schema.description, '    ')]),
      ];
    });
    return classText(`class ${name}(Model):`, description, members);
  }

  #dict({ properties = {}, required = [], description }: Schema, name: string): string {
    const members = Object.entries(properties).map(([key, schema]) => {
      const type = this.typeOf(schema, `${name}${pascalCase(key)}`);
      return { key, type: required.includes(key) ? type : `NotRequired[${type}]`, text: schema.description };
    });
    // A class cannot have a member such as `from`.
    if (!members.every(({ key }) => isName(key))) {
      const entries = members.map(({ key, type }) => `${quoted(key)}: ${quoted(type)}`);
      return `${name} = TypedDict(${quoted(name)}, {${entries.join(', ')}})`;
    }
    const lines = members.map(({ key, type, text }) => {
      return `    ${key}: ${type}${text === undefined ? '' : `\n${docstring(text, '    ')}`}`;
    });
    return classText(`class ${name}(TypedDict):`, description, lines);
  }
}

function classText(head: string, description: string | undefined, members: readonly string[]): string {
  const doc = description === undefined ? [] : [docstring(description, '    '), ''];
  return [head, ...doc, ...members].join('\n');
}

function literal(value: unknown): string {
  return typeof value === 'boolean' ? (value ? 'True' : 'False') : JSON.stringify(value);
}
