import { describe, expect, test } from 'vitest';
import { DatabaseUrlError, parseDatabaseUrl } from '../../../../src/platform/postgres/database-url.ts';

describe('the URL of a database', () => {
  test('names hosts with their ports, IPv6 and sockets among them, in the host part or by parameter', () => {
    const hostsOf = (url: string) => parseDatabaseUrl(url).hosts.map(({ host, port }) => `${host} ${port}`);
    expect(hostsOf('postgres://u:p@db/d')).toEqual(['db 5432']);
    expect(hostsOf('postgresql://u:p@a:1,b,[::1]:3/d')).toEqual(['a 1', 'b 5432', '::1 3']);
    expect(hostsOf('postgresql://u@/d?host=a,b&port=1,2')).toEqual(['a 1', 'b 2']);
    expect(hostsOf('postgresql://u@/d?host=/run/postgresql')).toEqual(['/run/postgresql 5432']);
    expect(hostsOf('postgresql://u@%2Frun%2Fpostgresql/d')).toEqual(['/run/postgresql 5432']);
  });

  test('gives user, password and name as they were before they were written as %-codes', () => {
    const target = parseDatabaseUrl('postgresql://u%40x:p%3A%2F%40%3F%23@db:5432/na%20me');
    expect(target).toMatchObject({ user: 'u@x', password: 'p:/@?#', database: 'na me' });
  });

  test('asks for the host that takes writes when there are several, and when it says so', () => {
    const needs = (url: string) => parseDatabaseUrl(url).needsPrimary;
    expect(needs('postgres://db/d')).toBe(false);
    expect(needs('postgres://db/d?target_session_attrs=read-write')).toBe(true);
    expect(needs('postgres://a,b/d')).toBe(true);
    expect(needs('postgres://a,b/d?target_session_attrs=any')).toBe(true);
  });

  test('has the TLS modes of PostgreSQL: require checks the authority once one is given', () => {
    const modeOf = (query: string) => parseDatabaseUrl(`postgres://db/d${query}`).tlsMode;
    expect(modeOf('')).toBe('disable');
    expect(modeOf('?sslmode=require')).toBe('require');
    expect(modeOf('?sslmode=require&sslrootcert=/ca.pem')).toBe('verify-ca');
    expect(modeOf('?sslmode=verify-full&sslrootcert=system')).toBe('verify-full');
    expect(parseDatabaseUrl('postgres://db/d?sslmode=verify-full&sslrootcert=system').tlsFiles).toEqual({});
  });

  test.each([
    'db/d',
    'mysql://u:secret@db/d',
    'postgres://u:secret@/d',
    'postgres://u:secret@db:99999/d',
    'postgres://u:secret@db:port/d',
    'postgres://u:secret@a b/d',
    'postgres://u:secret%ZZ@db/d',
    'postgres://u:secret@db/d?sslmode=prefer',
    'postgres://u:secret@db/d?sslmode=require&sslcert=/c',
    'postgres://u:secret@db/d?target_session_attrs=prefer-standby',
    'postgres://u:secret@db/d?application_name=secret',
  ])('%s is refused without a word of its secrets', (url) => {
    expect(() => parseDatabaseUrl(url)).toThrow(DatabaseUrlError);
    try {
      parseDatabaseUrl(url);
    } catch (error) {
      expect(String(error)).not.toContain('secret');
    }
  });
});
