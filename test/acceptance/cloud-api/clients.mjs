// Runs the two npm clients against the facade: the base address is all that differs. Prints a line of JSON each.
import { createServer } from 'node:http';
import { WhatsAppClient } from '@kapso/whatsapp-cloud-api';
import { normalizeWebhook, verifySignature } from '@kapso/whatsapp-cloud-api/server';
import { WhatsAppAPI } from 'whatsapp-api-js';
import { HeaderComponent, HeaderParameter, Image, Template, Text } from 'whatsapp-api-js/messages';

const [base, token, phone, waba, customer, secret] = process.argv.slice(2);
const JPEG = Buffer.concat([
  Buffer.from('ffd8ffe000104a46494600010100000100010000', 'hex'),
  Buffer.alloc(64),
]);
const received = { api: [], kapso: [], calls: [], forged: [] };
const arrived = Promise.withResolvers();
const called = Promise.withResolvers();

const api = new WhatsAppAPI({
  token,
  appSecret: secret,
  webhookVerifyToken: 'verify me',
  v: 'v26.0',
  ponyfill: {
    fetch: (url, options) => fetch(String(url).replace('https://graph.facebook.com', base), options),
    subtle: crypto.subtle,
  },
});
api.on.message = ({ from, message, name }) => {
  received.api.push({ id: message.id, text: message.text?.body, from, name });
};
api.on.call.connect = async ({ call, preaccept, accept }) => {
  received.calls.push([call.id, (await preaccept()).success, (await accept()).success]);
  called.resolve();
};

const server = createServer(async (request, response) => {
  try {
    if (request.method === 'GET') {
      const query = new URL(request.url, 'http://localhost').searchParams;
      return response.end(await api.get(Object.fromEntries(query)));
    }
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const rawBody = Buffer.concat(chunks);
    const signatureHeader = request.headers['x-hub-signature-256'];
    await api.post(JSON.parse(rawBody), rawBody.toString(), signatureHeader);
    const forged = `${rawBody} `;
    const refusal = await api.post(JSON.parse(forged), forged, signatureHeader).catch((error) => error);
    received.forged.push(refusal?.httpStatus ?? String(refusal));
    if (!verifySignature({ appSecret: secret, rawBody, signatureHeader }))
      throw new Error('kapso: signature');
    const { messages } = normalizeWebhook(JSON.parse(rawBody));
    received.kapso.push(...messages.map(({ id, from, text }) => ({ id, from, text: text?.body })));
    response.end('ok');
    if (received.kapso.length > 0) arrived.resolve();
  } catch (error) {
    received.error = String(error);
    response.writeHead(401).end();
  }
});
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
console.log(JSON.stringify({ url: `http://127.0.0.1:${server.address().port}/` }));

const kapso = new WhatsAppClient({ accessToken: token, baseUrl: base, graphVersion: 'v26.0' });
const apiSent = await api.sendMessage(phone, customer, new Text('Hello from whatsapp-api-js'));
const form = new FormData();
form.set('file', new Blob([JPEG], { type: 'image/jpeg' }), 'a.jpg');
form.set('type', 'image/jpeg');
const apiMedia = await api.uploadMedia(phone, form);
const apiObject = await api.retrieveMedia(apiMedia.id, phone);
const apiBytes = await (await api.fetchMedia(apiObject.url)).arrayBuffer();
const picture = new HeaderComponent(new HeaderParameter(new Image(apiMedia.id, true)));
const apiOffer = await api.sendMessage(phone, customer, new Template('summer_offer', 'en_US', picture));
const apiDeleted = await api.deleteMedia(apiMedia.id, phone);
const kapsoSent = await kapso.messages.sendText({
  phoneNumberId: phone,
  to: customer,
  body: 'Hello from kapso',
});
const kapsoMedia = await kapso.media.upload({
  ...{
    phoneNumberId: phone,
    type: 'image/jpeg',
    file: new Blob([JPEG], { type: 'image/jpeg' }),
    fileName: 'a.jpg',
  },
});
const apiCall = await api.initiateCall(phone, customer, 'v=0');
const apiEnded = await api.terminateCall(phone, apiCall.calls[0].id);
const kapsoObject = await kapso.media.get({ mediaId: kapsoMedia.id, phoneNumberId: phone });
const templates = await kapso.templates.list({ businessAccountId: waba, limit: 2 });
const refused = await kapso.messages
  .sendText({ phoneNumberId: '1', to: customer, body: 'x' })
  .catch((error) => error);
await Promise.race([
  Promise.all([arrived.promise, called.promise]),
  new Promise((resolve) => setTimeout(resolve, 60_000)),
]);
const [{ id: inbound }] = received.api;
const apiRead = [await api.markAsRead(phone, inbound), await api.markAsRead(phone, inbound, 'text')];
console.log(
  JSON.stringify({
    sent: [apiSent.messages?.[0]?.id, apiOffer.messages?.[0]?.id, kapsoSent.messages?.[0]?.id],
    media: [apiObject.mime_type, apiBytes.byteLength, apiDeleted.success, kapsoObject.mimeType],
    templates: templates.data.length,
    inbound,
    forged: [...new Set(received.forged)],
    read: apiRead.map(({ success }) => success),
    call: [apiCall.calls[0].id, apiEnded.success],
    refused: [refused.name, refused.httpStatus, refused.code],
    received,
  }),
);
process.exit(0);
