/**
 * An environment.yml where the worker has no conda: read here, then solved and installed by the
 * library of conda's successors that PyPI has as py-rattler, with nothing but Python 3.10.
 */
import { parse } from 'yaml';
import { Unprepared } from '../../runtimes/around.ts';
import { installsFolder } from './find.ts';

/** 0.x: another minor number may have another interface. */
const RATTLER = 'py-rattler~=0.28.0';
/** Where the file names none. */
const USUAL_CHANNELS = ['conda-forge'];
const ANACONDA = 'https://repo.anaconda.com/pkgs';
/** Names of channels that are no channels. */
const CHANNEL_NAMES: Record<string, string[]> = {
  nodefaults: [],
  defaults: [`${ANACONDA}/main`, `${ANACONDA}/r`],
};

const RECIPE = 'recipe.json';
const SCRIPT = 'install.py';

export interface CondaRecipe {
  channels: string[];
  specs: string[];
  /** Lines of a requirements file. */
  pip: string[];
  variables: Record<string, string>;
}

/** What is to be written into the environment's folder, then called with it and its tree. */
export function condaFiles(text: string, name: string): Record<string, string> {
  return { [RECIPE]: JSON.stringify(readRecipe(text, name)), [SCRIPT]: INSTALL };
}

export const condaCommand = (python: string, folder: string, tree: string): string[] => [
  ...[python, `${folder}/${SCRIPT}`, folder, tree],
];

export function readRecipe(text: string, name: string): CondaRecipe {
  const wrong = (what: string): Unprepared => new Unprepared(`${name} is no environment: ${what}`);
  let read: unknown;
  try {
    read = parse(text);
  } catch (error) {
    throw wrong((error as Error).message.split('\n')[0]!);
  }
  if (typeof read !== 'object' || read === null) throw wrong('it is not a map');
  const { channels = [], dependencies, variables = {} } = read as Record<string, unknown>;
  if (!isTexts(channels)) throw wrong('channels must be a list of names');
  if (!Array.isArray(dependencies)) throw wrong('dependencies must be a list');
  const recipe: CondaRecipe = { channels: [], specs: [], pip: [], variables: {} };
  for (const one of dependencies as unknown[]) {
    if (typeof one === 'string') recipe.specs.push(one);
    else recipe.pip.push(...pipLines(one, name, wrong));
  }
  for (const channel of channels.length > 0 ? channels : USUAL_CHANNELS) {
    recipe.channels.push(...(CHANNEL_NAMES[channel] ?? [channel]));
  }
  if (typeof variables !== 'object' || variables === null) throw wrong('variables must be a map');
  for (const [key, value] of Object.entries(variables)) recipe.variables[key] = String(value);
  return recipe;
}

function pipLines(one: unknown, name: string, wrong: (what: string) => Unprepared): string[] {
  const lines = (one as { pip?: unknown } | null)?.pip;
  if (!isTexts(lines)) throw wrong('a dependency is a text, or a map pip: with a list of texts');
  for (const line of lines) {
    if (!installsFolder(line) && !/^\s*(-r|--requirement|-c|--constraint)\b/.test(line)) continue;
    throw new Unprepared(
      `${name} installs a file or folder (${line.trim().slice(0, 100)}), but its environment is ` +
        'shared by all jobs with the same file: list the packages, and set PYTHONPATH',
    );
  }
  return lines;
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string');
}

/** Packages are fetched into the environment's own folder, from where they move into its tree. */
const INSTALL = `
import asyncio, json, os, shutil, subprocess, sys

own, tree = sys.argv[1:]
installer, cache = os.path.join(own, "installer"), os.path.join(own, "cache")

try:
    import rattler
except ImportError:
    if sys.prefix == installer:
        raise
    print("this worker has no micromamba, mamba or conda: installing ${RATTLER}", flush=True)
    python = os.path.join(installer, "bin", "python")
    pip = [python, "-m", "pip", "install", "--disable-pip-version-check", "${RATTLER}"]
    made = subprocess.call([sys.executable, "-m", "venv", installer]) == 0
    if not made or subprocess.call(pip) != 0:
        sys.exit("this worker lacks micromamba, mamba or conda, and ${RATTLER} is not to be had")
    os.execv(python, [python, *sys.argv])


class Progress(rattler.InstallerReporter):
    def on_transaction_start(self, total_operations):
        print("installing", total_operations, "packages", flush=True)

    def on_populate_cache_start(self, operation, package_name):
        print("installing", package_name, flush=True)
        return operation


async def install(recipe):
    records = await rattler.solve(
        sources=[rattler.Channel(channel) for channel in recipe["channels"]],
        specs=[rattler.MatchSpec(spec) for spec in recipe["specs"]],
        gateway=rattler.Gateway(cache_dir=os.path.join(cache, "channels")),
        virtual_packages=rattler.VirtualPackage.detect(),
    )
    places = {"cache_dir": os.path.join(cache, "packages"), "target_prefix": tree}
    how = {"show_progress": False, "execute_link_scripts": True, "reporter": Progress()}
    await rattler.install(records, **places, **how)


with open(os.path.join(own, "${RECIPE}")) as file:
    recipe = json.load(file)
try:
    asyncio.run(install(recipe))
except Exception as error:
    sys.exit(str(error))
with open(os.path.join(tree, "conda-meta", "state"), "w") as file:
    json.dump({"env_vars": recipe["variables"]}, file)
if recipe["pip"]:
    lines = os.path.join(own, "pip.txt")
    with open(lines, "w") as file:
        file.write("\\n".join(recipe["pip"]) + "\\n")
    python = os.path.join(tree, "bin", "python")
    if not os.path.exists(python):
        sys.exit("its pip: part needs python and pip among the dependencies")
    done = subprocess.call([python, "-m", "pip", "install", "-r", lines])
    if done != 0:
        sys.exit(done)
for left in (installer, cache):
    shutil.rmtree(left, ignore_errors=True)
`;
