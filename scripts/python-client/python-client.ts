import { type OpenApiDocument, operationsOf } from '../../test/support/openapi-document.ts';
import { adaptersOf, BY_HAND, type Flavour, methodsOf, type Writers } from './method-writer.ts';
import { type Schema, TypeWriter } from './type-writer.ts';

const HEAD = '# Made by `npm run client` from the OpenAPI document. Do not edit it.\n';

/** The generated part of the Python client, by the names of its files. */
export function pythonClient(document: OpenApiDocument): Map<string, string> {
  const components = document.components.schemas as Record<string, Schema>;
  const writers: Writers = {
    models: new TypeWriter(components, 'models'),
    requests: new TypeWriter(components, 'requests'),
  };
  const apis = (['sync', 'async'] as const).map((flavour) => apiText(document, writers, flavour));
  addOthers(document, writers);
  const [sync = '', async = ''] = apis;
  return new Map([
    ['__init__.py', HEAD],
    ['models.py', modelsText(writers.models)],
    ['requests.py', requestsText(writers.requests)],
    ['sync_api.py', sync],
    ['async_api.py', async],
  ]);
}

/** Types that no generated method names: events, bodies of operations by hand. */
function addOthers(document: OpenApiDocument, { models, requests }: Writers): void {
  const components = document.components.schemas ?? {};
  const webhooks = operationsOf(document, 'webhooks').flatMap(({ requestBody }) =>
    Object.values(requestBody?.content ?? {}).map(({ schema }) => schema as Schema),
  );
  for (const schema of webhooks) models.typeOf(schema, 'Webhook');
  const add = (writer: TypeWriter, name: string) => {
    if (name in components) writer.typeOf({ $ref: `#/components/schemas/${name}` }, '');
  };
  for (const name of ['UploadedMedia', 'TemplateMedia']) add(models, name);
  add(models, 'ErrorCode');
  add(requests, 'ExportRequest');
}

function apiText(document: OpenApiDocument, writers: Writers, flavour: Flavour): string {
  const operations = operationsOf(document).filter(({ operationId = '' }) => !BY_HAND.has(operationId));
  const methods = operations.flatMap((operation) => methodsOf(operation, writers, flavour));
  const [iterator, core, name] =
    flavour === 'sync' ? ['Iterator', 'SyncCore', 'SyncApi'] : ['AsyncIterator', 'AsyncCore', 'AsyncApi'];
  return `${HEAD}
from collections.abc import ${iterator}
from datetime import datetime
from typing import Any, Literal

from pydantic import TypeAdapter

from heliograph._${flavour}_core import ${core}
from heliograph._request import new_idempotency_key, parse_any, path_part, with_cursor
from . import models, requests

${adaptersOf(operations, writers).join('\n')}


class ${name}(${core}):
    """A method for each operation of the API."""

${methods.join('\n\n')}
`;
}

function modelsText(models: TypeWriter): string {
  return `${HEAD}"""What responses and webhooks have."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, TypeAlias

from pydantic import Field

from heliograph._model import Model


${[...models.classes.values()].join('\n\n\n')}
`;
}

function requestsText(requests: TypeWriter): string {
  return `${HEAD}"""Bodies of requests."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, TypeAlias

from typing_extensions import NotRequired, TypedDict


${[...requests.classes.values()].join('\n\n\n')}
`;
}
