/** The self-contained agent as the gateway serves it, for hosts that cannot fetch it themselves. */
import * as http from 'node:http';
import * as https from 'node:https';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { rootCertificates } from 'node:tls';

const PLATFORMS: Record<string, string> = {
  'Linux-x86_64': 'linux-x64',
  'Linux-aarch64': 'linux-arm64',
};
/** Without a byte for so long it is given up. */
const SILENCE_MS = 30_000;

export interface AgentFile {
  sum: string;
  body: Readable;
}

/** `platform` as `uname -s` and `uname -m` have it. Throws where there is none. */
export async function fetchAgent(
  url: string,
  authorities: string,
  platform: string,
): Promise<AgentFile> {
  const known = PLATFORMS[platform];
  if (!known) throw new Error(`there is no agent for ${platform}`);
  const from = (name: string): Promise<Readable> =>
    get(`${url.replace(/\/$/, '')}/install/${name}?platform=${known}`, authorities);
  const [sum = ''] = (await text(await from('agent.sha256'))).split(' ');
  if (!/^[0-9a-f]{64}$/.test(sum)) throw new Error(`${url}/install/agent.sha256 is no checksum`);
  return { sum, body: await from('agent') };
}

function get(url: string, authorities: string): Promise<Readable> {
  return new Promise((resolve, reject) => {
    const ca = authorities ? { ca: [...rootCertificates, authorities] } : {};
    const client = url.startsWith('https:') ? https : http;
    const request = client.get(url, { ...ca, timeout: SILENCE_MS }, (response) => {
      if (response.statusCode === 200) return resolve(response);
      response.resume();
      reject(new Error(`${url} answers ${response.statusCode}`));
    });
    request.on('timeout', () => request.destroy(new Error(`${url} does not answer`)));
    request.on('error', reject);
  });
}
