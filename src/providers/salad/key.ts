/** The API key: from its file at every request, so that a new one needs no restart. */
import { readFile } from 'node:fs/promises';

const KEY_VARIABLE = 'SALAD_API_KEY';

type Environment = Readonly<Record<string, string | undefined>>;

export function keyReader(file: string, env: Environment): () => Promise<string> {
  return async () => {
    const key = file ? await contentOf(file) : env[KEY_VARIABLE]?.trim();
    if (key && /^[\x21-\x7e]+$/.test(key)) return key;
    // The value itself stays out of every message.
    if (file) throw new Error(`salad.apiKeyFile (${file}) does not hold an API key`);
    throw new Error(
      `there is no API key: name its file by salad.apiKeyFile, or set ${KEY_VARIABLE}`,
    );
  };
}

async function contentOf(file: string): Promise<string> {
  try {
    return (await readFile(file, 'utf8')).trim();
  } catch (error) {
    throw new Error(`salad.apiKeyFile (${file}) cannot be read`, { cause: error });
  }
}
