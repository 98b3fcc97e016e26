import { describe, expect, test } from 'vitest';
import { bodyText, METADATA, splitFixture, splitText, statusOf } from './support/upstream-body.ts';

describe('message statuses', () => {
  test('carry the upstream object unmodified', () => {
    const status = '{ "id":"wamid.A", "status":"sent","pricing":{"n":1.0},"id2":9007199254740993 }';
    const item = statusOf(status, '[]');
    expect(item.eventData).toBe(`{"metadata":${METADATA},"status":${status}}`);
    expect(item.rawJson).toBe(status);
  });

  test('have the unmodified contacts entries of the recipient, where there are any', () => {
    const dataOf = (recipient: string, contacts: string) =>
      statusOf(`{"id":"w","status":"sent","recipient_id":"${recipient}"}`, contacts).eventData;
    const contact = '{ "wa_id" : "1" , "user_id":"U1", "n":1.0 }';
    expect(dataOf('1', `[{"wa_id":"9"},${contact}]`)).toContain(
      `{"metadata":${METADATA},"contacts":[${contact}],"status":{`,
    );
    expect(dataOf('2', `[${contact}]`)).toContain(`"contacts":[${contact}]`);
    expect(dataOf('2', `[{"wa_id":"9"},${contact}]`)).not.toContain('contacts');
  });

  test('do not take the sole entry when it may be that of somebody else', () => {
    const statuses = (ids: string[]) =>
      ids.map((id) => `{"id":"w${id}","status":"sent","recipient_id":"${id}"}`).join();
    const contactsOf = (value: string) =>
      splitText(bodyText(`"contacts":[{"wa_id":"1"}],${value}`))
        .items.filter(({ kind }) => kind === 'status')
        .map((item) => JSON.parse(item.eventData).contacts?.length ?? 0);
    expect(contactsOf(`"statuses":[${statuses(['2', '3'])}]`)).toEqual([0, 0]);
    expect(contactsOf(`"statuses":[${statuses(['2', '1'])}]`)).toEqual([0, 1]);
    expect(contactsOf(`"messages":[{"id":"m","from":"1"}],"statuses":[${statuses(['2'])}]`)).toEqual([0]);
    const nobody = '{"id":"w","status":"sent"}';
    expect(contactsOf(`"statuses":[${statuses(['1'])},${nobody}]`)).toEqual([1, 0]);
    expect(contactsOf(`"messages":[{"id":"m","from":"1"}],"statuses":[${nobody}]`)).toEqual([0]);
    expect(contactsOf(`"statuses":[${nobody}]`)).toEqual([1]);
  });

  test('carry the errors of a failure as they are written', () => {
    const item = statusOf('{"id":"w","status":"failed","errors":[{"code":0,"title":"\\u00e4"}]}');
    expect(item.errorsJson).toBe('[{"code":0,"title":"\\u00e4"}]');
    expect(statusOf('{"id":"w","status":"sent","errors":null}').errorsJson).toBeNull();
  });

  test.each([
    ['{"recipient_participant_id":"p"}', 'p'],
    ['{"participant_recipient_id":"p"}', 'p'],
    ['{"recipient_participant_user_id":"p"}', 'p'],
    ['{"recipient_participant_id":null,"participant_recipient_id":"p"}', 'p'],
    ['{"recipient_id":"p"}', null],
  ])('read the group member from %s', (members, participant) => {
    const item = statusOf(`{"id":"w","status":"read",${members.slice(1)}`);
    expect(item.participant).toBe(participant);
  });

  test('of a group name the member and not the group as the recipient', () => {
    const item = statusOf(
      '{"id":"w","status":"read","recipient_id":"GROUP","recipient_type":"group","recipient_participant_id":"1","recipient_participant_user_id":"U1"}',
      '[]',
    );
    expect(item.recipient).toEqual({ waId: '1', userId: 'U1', otherPhone: null });
  });

  test('learn the other id of the recipient from the contacts entry of that person only', () => {
    const contacts = '[{"wa_id":"9","user_id":"U9"},{"wa_id":"1","user_id":"U1"}]';
    expect(statusOf('{"id":"w","status":"sent","recipient_id":"1"}', contacts).recipient).toEqual({
      waId: '1',
      userId: 'U1',
      otherPhone: null,
    });
    expect(statusOf('{"id":"w","status":"sent"}', contacts).recipient).toEqual({
      waId: null,
      userId: null,
      otherPhone: null,
    });
  });

  test('without a phone number are known by the user id', () => {
    const [item] = splitFixture('st_delivered_bsuid_only').items;
    expect(item).toMatchObject({
      recipient: { waId: null, userId: 'US.10000000000000000144' },
      participant: null,
    });
  });

  test('are the same only with number, id, status and participant the same', () => {
    const keys = [
      '{"id":"a","status":"sent"}',
      '{"id":"a","status":"read"}',
      '{"id":"b","status":"sent"}',
      '{"id":"a","status":"sent","recipient_participant_id":"p"}',
      '{"id":"a\\",\\"sent","status":"x"}',
      '{"id":"a|sent","status":"x"}',
    ].map((status) => statusOf(status).dedupKey);
    expect(new Set(keys).size).toBe(keys.length);
    const again = statusOf('{"id":"a","status":"sent","timestamp":"5","recipient_id":"7"}');
    expect(again.dedupKey).toBe(keys[0]);
  });

  test('that are legacy or new pass through', () => {
    for (const status of ['deleted', 'warning', 'held_by_carrier_2027']) {
      expect(statusOf(`{"id":"w","status":"${status}"}`).status).toBe(status);
    }
    expect(statusOf('{"id":"w","type":"message","status":"sent"}').status).toBe('sent');
  });
});
