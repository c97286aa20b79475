/** Opening the port: where it is refused, and with which words. */
import { expect, test } from 'vitest';
import { startTestGateway } from './testGateway.ts';

test('a port in use is an error that says what to try', async () => {
  await using first = await startTestGateway();
  const second = startTestGateway({}, { port: Number(new URL(first.url).port) });
  await expect(second).rejects.toMatchObject({
    code: 'CONFLICT',
    message: expect.stringContaining('Another process listens on port'),
    hint: expect.stringContaining('another port'),
  });
});

test.each(['0.0.0.0', '::', '192.0.2.1', 'example.invalid', '127.0.0.1.example.invalid'])(
  '%s is refused unless plain HTTP was asked for',
  async (host) => {
    await expect(startTestGateway({}, { host })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      hint: expect.stringContaining('insecure'),
    });
  },
);

test('every address can be asked for', async () => {
  await using gateway = await startTestGateway({}, { host: '0.0.0.0', insecure: true });
  expect((await gateway.call('GET', '/healthz')).status).toBe(200);
});

test('an address of another machine is an error that says so', async () => {
  const foreign = startTestGateway({}, { host: '192.0.2.1', insecure: true });
  await expect(foreign).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: expect.stringContaining('no address of this machine'),
  });
});

test('localhost is one address, and the URL says which', async () => {
  await using gateway = await startTestGateway({}, { host: 'localhost' });
  expect(gateway.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
});
