/** Inputs from the Hugging Face Hub: a model's or data set's files at one revision. */
import { request } from 'undici';
import { staysBelow } from '../../model/manifest.ts';
import { Unprepared } from '../runtimes/around.ts';
import { fetchFolder } from './folder.ts';
import { fetchFile } from './fromHttp.ts';
import type { Arrival, Source } from './source.ts';

const ENDPOINT = 'https://huggingface.co';
const REPOSITORY = /^hf:\/\/(datasets\/|spaces\/)?([^/@]+\/[^/@]+)(?:@([^/]+))?(?:\/(.+))?$/s;
const SILENCE_MS = 60_000;

interface Repository {
  endpoint: string;
  /** models, datasets or spaces. */
  kind: string;
  /** In front of the name, in addresses of files. */
  prefix: string;
  name: string;
  revision: string;
  /** A file or a folder of it; empty: all. */
  path: string;
  headers: () => Record<string, string>;
}

/** The revision is looked up once, so that all files are of one commit. */
export const fromHf: Source = async (arrival) => {
  const { input } = arrival;
  const repository = repositoryOf(arrival);
  const { commit, paths } = await listFiles(arrival, repository);
  const { endpoint, prefix, name, path, headers } = repository;
  const base = `${endpoint}/${prefix}${name}/resolve/${commit}`;
  const urlOf = (file: string): string =>
    [base, ...file.split('/').map(encodeURIComponent)].join('/');
  if (paths.includes(path)) return fetchFile(arrival, { url: urlOf(path), headers });
  const below = path === '' ? '' : `${path.replace(/\/+$/, '')}/`;
  const wanted = paths.filter((one) => one.startsWith(below));
  if (wanted.length === 0) throw new Unprepared(`input ${input.name}: ${input.uri} has no ${path}`);
  const names = wanted.map((one) => one.slice(below.length));
  return fetchFolder(arrival, names, (own, one) =>
    fetchFile(own, { url: urlOf(below + one), headers }),
  );
};

function repositoryOf({ input: { name: input, uri }, env }: Arrival): Repository {
  const match = REPOSITORY.exec(uri);
  if (!match) {
    throw new Unprepared(
      `input ${input}: ${uri} is not hf://ORG/NAME[@REVISION][/PATH], with datasets/ in front of ` +
        'ORG for a data set',
    );
  }
  const [, prefix = '', name = '', revision = 'main', path = ''] = match;
  const token = env['HF_TOKEN'];
  return {
    endpoint: (env['HF_ENDPOINT'] || ENDPOINT).replace(/\/+$/, ''),
    kind: prefix.replace('/', '') || 'models',
    prefix,
    name,
    revision,
    path,
    headers: () => (token ? { authorization: `Bearer ${token}` } : {}),
  };
}

async function listFiles(
  { input: { name: input, uri }, signal }: Arrival,
  { endpoint, kind, name, revision, headers }: Repository,
): Promise<{ commit: string; paths: string[] }> {
  const url = `${endpoint}/api/${kind}/${name}/revision/${encodeURIComponent(revision)}`;
  const timeouts = { headersTimeout: SILENCE_MS, bodyTimeout: SILENCE_MS };
  let answer;
  try {
    answer = await request(url, { headers: headers(), signal, ...timeouts });
  } catch (error) {
    if (signal.aborted) throw error;
    const message = `input ${input} cannot be had: ${(error as Error).message}`;
    throw new Unprepared(message, { hostFault: true, cause: error });
  }
  const { statusCode, body } = answer;
  if (statusCode !== 200) {
    await body.dump();
    const why = statusCode < 500 ? ': it is not there, or needs HF_TOKEN of the agent' : '';
    const message = `input ${input}: the hub answered ${statusCode} for ${uri}${why}`;
    throw new Unprepared(message, { hostFault: statusCode >= 500 });
  }
  const { sha, siblings } = (await body.json()) as {
    sha?: string;
    siblings?: { rfilename?: unknown }[];
  };
  const paths = (siblings ?? []).map(({ rfilename }) => rfilename).filter(staysBelow);
  if (!sha || paths.length === 0) throw new Unprepared(`input ${input}: ${uri} holds no files`);
  return { commit: sha, paths };
}
