/** Every way to name a machine that is none of the sender's business. */
import { describe, expect, test } from 'vitest';
import { checkedAddress, isPrivate, type Resolve } from './address.ts';

const answers =
  (...addresses: string[]): Resolve =>
  async () =>
    addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));

describe('refused', () => {
  test.each([
    'http://127.0.0.1/',
    'http://127.1/',
    'http://2130706433/',
    'http://0x7f000001/',
    'http://017700000001/',
    'http://0.0.0.0/',
    'http://169.254.169.254/latest/meta-data/',
    'http://10.1.2.3/',
    'http://172.31.255.255/',
    'http://192.168.1.1/',
    'http://100.100.100.200/',
    'http://[::1]/',
    'http://[::]/',
    'http://[::ffff:127.0.0.1]/',
    'http://[::ffff:a9fe:a9fe]/',
    'http://[64:ff9b::7f00:1]/',
    'http://[2002:7f00:1::]/',
    'http://[fd00:ec2::254]/',
    'http://[fe80::1]/',
  ])('%s', async (url) => {
    await expect(checkedAddress(new URL(url).hostname, false)).rejects.toThrow('private network');
  });

  test('a name, when one of its addresses is private', async () => {
    for (const address of ['127.0.0.1', '10.0.0.7', '169.254.169.254', '::1', 'fd12::1']) {
      const resolve = answers('93.184.216.34', address);
      await expect(checkedAddress('hooks.example', false, resolve)).rejects.toThrow(
        'the host hooks.example is on a private network or this machine',
      );
    }
  });

  test('localhost, as this machine resolves it', async () => {
    await expect(checkedAddress('localhost', false)).rejects.toThrow('private network');
  });

  test('what is no address', () => {
    expect(isPrivate('')).toBe(true);
    expect(isPrivate('example.org')).toBe(true);
  });
});

describe('allowed', () => {
  test('public addresses', async () => {
    expect(await checkedAddress('93.184.216.34', false)).toEqual({
      address: '93.184.216.34',
      family: 4,
    });
    const resolve = answers('2606:2800:220:1::1', '93.184.216.34');
    expect(await checkedAddress('hooks.example', false, resolve)).toEqual({
      address: '2606:2800:220:1::1',
      family: 6,
    });
  });

  test('private ones where the operator says so', async () => {
    expect(await checkedAddress('[::1]', true)).toEqual({ address: '::1', family: 6 });
  });
});
