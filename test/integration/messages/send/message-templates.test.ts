import { describe, expect, test } from 'vitest';
import { runAdmin } from '../../../support/admin-cli.ts';
import { takeIn } from '../../../support/take-in.ts';
import { addFacadeKey } from '../../api/graph/facade-key.ts';
import { askApi } from './ask-api.ts';
import { sendingStackOfFile } from './sending-stack.ts';

const stack = sendingStackOfFile();
const ask = (query = '') => askApi(stack, `/api/external/message-templates${query}`, {});

const walks = async () => {
  const { data } = (await (await fetch(`${stack.sandboxUrl}/sandbox/requests`)).json()) as {
    data: { path: string }[];
  };
  return data.filter(({ path }) => path.endsWith(`/${stack.wabaId}/message_templates`)).length;
};

describe('the copy of the message templates', () => {
  test('is empty until upstream lists them, is read without it, and is copied again on request only', async () => {
    expect((await ask()).body).toEqual({ data: [], hasMore: false, nextCursor: null });
    expect(await walks()).toBe(0);
    const { status, body } = await ask('?refresh=true');
    expect(status).toBe(200);
    expect(body.data.map(({ name, language }: Record<string, string>) => `${name} ${language}`)).toEqual([
      'login_code en_US',
      'order_ready de',
      'order_ready en_US',
      'summer_offer en_US',
      'winter_offer en_US',
      'winter_sale en_US',
    ]);
    expect(body.data[4]).toEqual({
      id: '990000000000005',
      name: 'winter_offer',
      language: 'en_US',
      status: 'REJECTED',
      category: 'MARKETING',
      quality: 'UNKNOWN',
      rejectedReason: null,
      components: [{ type: 'BODY', text: 'Hello {{first_name}}, all cups are warm again.' }],
      updatedAt: expect.stringMatching(/Z$/),
    });
    expect(await walks()).toBe(1);
    expect((await ask()).body).toEqual(body);
    // Upstream counts each call.
    await ask('?refresh=true');
    expect(await walks()).toBe(1);
  });

  test('is filtered, and has pages that miss none', async () => {
    await ask('?refresh=true');
    const names = async (query: string) =>
      (await ask(query)).body.data.map(({ id }: { id: string }) => id.at(-1)).join('');
    expect(await names('?name=order_ready')).toBe('21');
    expect(await names('?name=order_ready&language=en-US')).toBe('1');
    expect(await names('?category=MARKETING&status=APPROVED')).toBe('36');
    const pages: string[] = [];
    for (let cursor = ''; ; ) {
      const { body } = await ask(`?limit=2${cursor && `&cursor=${cursor}`}`);
      pages.push(body.data.map(({ id }: { id: string }) => id.at(-1)).join(''));
      if (!body.hasMore) break;
      cursor = body.nextCursor;
    }
    expect(pages).toEqual(['42', '13', '56']);
    expect((await ask('?refresh=maybe')).status).toBe(400);
  });

  test('stays as it was when upstream refuses', async () => {
    await stack.addFault({ match: 'templates', kind: 'status', status: 400, code: 100, times: 1 });
    const { status, body } = await ask('?refresh=true');
    expect([status, body.error.code]).toEqual([424, 'upstream_refused']);
    expect((await ask()).body.data).toEqual([]);
  });
});

const send = (name: string, ...texts: string[]) => {
  const parameters = texts.map((text) => ({ type: 'text', text }));
  const components = texts.length === 0 ? [] : [{ type: 'body', parameters }];
  return {
    to: '+12025550143',
    type: 'template',
    template: { name, language: { code: 'en-US' }, components },
  };
};

const facade = async (body: object) => {
  const response = await stack.app.inject({
    method: 'POST',
    url: `/graph/v26.0/${stack.number}/messages`,
    headers: { authorization: `Bearer ${await addFacadeKey(stack.database, stack.wabaId)}` },
    payload: { messaging_product: 'whatsapp', ...body },
  });
  return { status: response.statusCode, error: response.json().error };
};

async function report(field: string, value: object): Promise<void> {
  const template = {
    message_template_id: 990000000000001,
    message_template_name: 'order_ready',
    message_template_language: 'en_US',
  };
  const changes = [{ field, value: { ...template, ...value } }];
  const entry = [{ id: stack.wabaId, time: Math.floor(Date.now() / 1_000) + 60, changes }];
  await takeIn(stack.database, Buffer.from(JSON.stringify({ entry })));
}

describe('a message with a template', () => {
  test('is shown in the document as the template of that name takes it', async () => {
    await ask('?refresh=true');
    const document = (await stack.app.inject('/api/external/openapi.json')).json();
    const { requestBody } = document.paths['/api/external/messages'].post;
    const { value } = requestBody.content['application/json'].examples.template;
    expect((await stack.sendToEnd({ ...value, phoneNumberId: stack.number })).status).toBe(200);
    const { data } = (await ask('?name=order_ready&language=en_US')).body;
    const shown = document.components.schemas.MessageTemplate.properties.components.example;
    expect(data[0].components).toMatchObject(
      expect.arrayContaining([expect.objectContaining(shown?.[0] ?? {})]),
    );
  });

  test('that upstream paused is refused with the reason, and sent again once upstream says so', async () => {
    await ask('?refresh=true');
    await report('message_template_status_update', { event: 'PAUSED', reason: 'LOW_QUALITY' });
    const { status, body } = await stack.send(send('order_ready', 'Asha', 'ORD-7'));
    expect([status, body.error.code, body.error.message]).toEqual([
      422,
      'template_paused',
      'The template order_ready (en_US) is paused by upstream: LOW_QUALITY.',
    ]);
    const byFacade = await facade(send('order_ready', 'Asha', 'ORD-7'));
    expect([byFacade.status, byFacade.error.code]).toEqual([400, 132_015]);
    expect(await stack.sendRequests()).toEqual([]);
    await report('message_template_status_update', { event: 'REINSTATED' });
    expect((await stack.sendToEnd(send('order_ready', 'Asha', 'ORD-7'))).status).toBe(200);
  });

  test('is told which variable is missing or surplus, and upstream judges what is not known', async () => {
    await ask('?refresh=true');
    const { status, body } = await stack.send(send('order_ready', 'Asha'));
    expect([status, body.error.code, body.error.message]).toEqual([
      422,
      'template_variables_wrong',
      'The template order_ready (en_US): the body lacks {{2}}.',
    ]);
    const byFacade = await facade(send('order_ready', 'a', 'b', 'c'));
    expect([byFacade.status, byFacade.error.code, byFacade.error.error_data.details]).toEqual([
      400,
      132_000,
      'The template order_ready (en_US): the body has no {{3}}.',
    ]);
    expect(await stack.sendRequests()).toEqual([]);
    const unknown = await stack.sendToEnd(send('unknown_one', 'Asha'));
    expect([unknown.status, unknown.body.error.upstream.code]).toEqual([424, 132_001]);
    await report('message_template_components_update', { message_template_element: 'Hello' });
    expect((await stack.sendToEnd(send('order_ready'))).status).toBe(200);
  });
});

const offer = {
  to: '+12025550143',
  type: 'template',
  template: { name: 'summer_offer', language: { code: 'en_US' } },
};

/** The calls by which messages were sent since the last look. */
async function calls(): Promise<string[]> {
  const { data } = (await (await fetch(`${stack.sandboxUrl}/sandbox/requests`)).json()) as {
    data: { method: string; path: string }[];
  };
  await fetch(`${stack.sandboxUrl}/sandbox/requests`, { method: 'DELETE' });
  return data.flatMap(({ method, path }) => (method === 'POST' ? (path.split('/').at(-1) ?? '') : []));
}

const refuseOnce = async (code: number) =>
  await stack.addFault({ match: 'send', kind: 'status', status: 400, code, times: 1 });

const setRoute = async (route: string) =>
  await runAdmin(stack.settings, ['waba', 'set-marketing', stack.number, '--route', route, '--json']);

describe('a marketing template', () => {
  test('goes to marketing_messages, others and unknown ones to messages, by the facade too', async () => {
    expect((await stack.send(offer)).status).toBe(200);
    expect(await calls()).toEqual(['messages']);
    await ask('?refresh=true');
    expect((await stack.send(offer)).status).toBe(200);
    expect((await facade(offer)).status).toBe(200);
    expect((await stack.sendToEnd(send('order_ready', 'Asha', 'ORD-7'))).status).toBe(200);
    expect(await calls()).toEqual(['marketing_messages', 'marketing_messages', 'messages']);
  });

  test.each([131_055, 134_100, 134_102])(
    'that is refused there with %i is sent to messages, once',
    async (code) => {
      await ask('?refresh=true');
      await refuseOnce(code);
      expect((await stack.send(offer)).status).toBe(200);
      expect(await calls()).toEqual(['marketing_messages', 'messages']);
      expect(await stack.sent()).toHaveLength(1);
    },
  );

  test('that messages does not take is sent to marketing_messages', async () => {
    await refuseOnce(131_063);
    expect((await stack.send(offer)).status).toBe(200);
    expect(await calls()).toEqual(['messages', 'marketing_messages']);
  });

  test('goes where the operator wants it, and its refusal there is final and explained', async () => {
    await ask('?refresh=true');
    await calls();
    await setRoute('never');
    expect((await stack.send(offer)).status).toBe(200);
    await setRoute('always');
    await refuseOnce(134_102);
    const { status, body } = await stack.send(offer);
    expect([status, body.error.advice]).toEqual([424, expect.stringContaining('onboarding')]);
    expect(await calls()).toEqual(['messages', 'marketing_messages']);
    await setRoute('auto');
    await refuseOnce(134_102);
    expect((await facade({ ...offer, product_policy: 'STRICT' })).status).toBe(400);
    expect(await calls()).toEqual(['marketing_messages']);
  });
});
