/** Links and sessions of proxied pages: once, for a while, for one endpoint. */
import { expect, test } from 'vitest';
import { systemClock } from '../../lib/clock.ts';
import { requestHeaders, responseHeaders, sessionOf } from './headers.ts';
import { ProxySessions } from './sessions.ts';

const MINUTE_MS = 60_000;

function sessionsAt() {
  let now = 0;
  const sessions = new ProxySessions({ ...systemClock, bootMs: () => now });
  return { sessions, pass: (ms: number) => void (now += ms) };
}

test('a link works once, for two minutes, for its own endpoint', () => {
  const { sessions, pass } = sessionsAt();
  const code = sessions.createLogin('j1.0:80', 'secret');
  const session = sessions.login('j1.0:80', code);
  expect(sessions.bearerOf('j1.0:80', session)).toBe('secret');
  expect(sessions.bearerOf('j1.0:81', session)).toBeUndefined();
  expect(sessions.bearerOf('j1.0:80', code)).toBeUndefined();
  expect(() => sessions.login('j1.0:80', code)).toThrow('used already');
  const other = sessions.createLogin('j1.0:80', 'secret');
  expect(() => sessions.login('j2.0:80', other)).toThrow();
  expect(() => sessions.login('j1.0:80', other)).toThrow();
  const late = sessions.createLogin('j1.0:80', 'secret');
  pass(2 * MINUTE_MS + 1);
  expect(() => sessions.login('j1.0:80', late)).toThrow('too old');
});

test('a session lasts as long as it is used', () => {
  const { sessions, pass } = sessionsAt();
  const session = sessions.login('j1.0:80', sessions.createLogin('j1.0:80', 'secret'));
  for (let days = 0; days < 3; days++) {
    pass(11 * 60 * MINUTE_MS);
    expect(sessions.bearerOf('j1.0:80', session)).toBe('secret');
  }
  pass(12 * 60 * MINUTE_MS + 1);
  expect(sessions.bearerOf('j1.0:80', session)).toBeUndefined();
});

test('links beyond the limit take the place of the oldest', () => {
  const { sessions } = sessionsAt();
  const first = sessions.createLogin('j1.0:80', 'secret');
  let last = '';
  for (let n = 0; n < 10_000; n++) last = sessions.createLogin('j1.0:80', 'secret');
  expect(() => sessions.login('j1.0:80', first)).toThrow();
  expect(sessions.login('j1.0:80', last)).toHaveLength(32);
});

test('our cookie is found among others, and passes in neither direction', () => {
  const cookie = 'a=1; drover_proxy=x=y; b';
  expect(sessionOf(cookie)).toBe('x=y');
  expect(sessionOf(undefined)).toBeUndefined();
  const options = { withAuthorization: false, prefix: '/proxy/j:1/', address: '127.0.0.1' };
  const headers = { cookie, authorization: 'Bearer t', connection: 'upgrade', host: 'h' };
  expect(requestHeaders(headers, options)).toEqual({
    cookie: 'a=1; b=',
    host: 'h',
    'x-forwarded-for': '127.0.0.1',
    'x-forwarded-host': 'h',
    'x-forwarded-prefix': '/proxy/j:1/',
  });
  const set = { 'set-cookie': [' drover_proxy=evil', 'drover_proxy_other=1'], te: 'trailers' };
  expect(responseHeaders(set)).toEqual({ 'set-cookie': ['drover_proxy_other=1'] });
});
