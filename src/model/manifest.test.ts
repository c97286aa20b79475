/** Manifests: equal folders are equal texts, and none can lead outside of where it is written. */
import { expect, test } from 'vitest';
import { blobHashOf } from './blob.ts';
import { linkStaysBelow, manifestText, parseManifest, type Manifest } from './manifest.ts';

const hash = blobHashOf(Buffer.from('x'));
const file = (path: string) => ({ path, hash, size: 1, executable: false });
const manifest = (more: Partial<Manifest>): Manifest => ({
  version: 1,
  files: [],
  links: [],
  folders: [],
  ...more,
});

test('equal folders have equal texts, in whatever order they were read', () => {
  const links = [{ path: 'c', target: 'a' }];
  const one = manifestText(manifest({ files: [file('b'), file('a')], links }));
  const other = manifestText(manifest({ files: [file('a'), file('b')], links }));
  expect(one).toBe(other);
  expect(manifestText(parseManifest(one))).toBe(one);
});

test.each([
  ['{', 'JSON'],
  ['null', 'version 1'],
  ['{"version":1,"files":[]}', 'incomplete'],
  [JSON.stringify(manifest({ files: [file('../x')] })), 'leads out'],
  [JSON.stringify(manifest({ files: [file('/etc/passwd')] })), 'leads out'],
  [JSON.stringify(manifest({ files: [file('a//b')] })), 'leads out'],
  [JSON.stringify(manifest({ folders: ['a/..'] })), 'leads out'],
  [JSON.stringify(manifest({ files: [file('a'), file('a')] })), 'twice'],
  [JSON.stringify(manifest({ files: [{ ...file('a'), hash: 'sha256:1' }] })), 'no hash'],
  [JSON.stringify(manifest({ links: [{ path: 'l', target: '/etc' }] })), 'leads out'],
  [JSON.stringify(manifest({ links: [{ path: 'l', target: '../..' }] })), 'leads out'],
  [
    JSON.stringify(manifest({ links: [{ path: 'l', target: 'd' }], files: [file('l/x')] })),
    'lies below',
  ],
])('refused: %s', (text, reason) => {
  expect(() => parseManifest(text)).toThrow(reason);
});

test('links may go up as far as the folder itself', () => {
  expect(linkStaysBelow('a/b/link', '../../c')).toBe(true);
  expect(linkStaysBelow('a/b/link', '../../../c')).toBe(false);
  expect(linkStaysBelow('link', 'a/../../b')).toBe(false);
});
