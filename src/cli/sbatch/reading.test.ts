/** How options are read: lines, words, forms, and which source wins. */
import { describe, expect, test } from 'vitest';
import { expandHosts } from './hosts.ts';
import { arrange, mergeSettings, readCommandLine, readScript, readVariables } from './settings.ts';
import { checkScript, scriptWords } from './words.ts';

const wordsOf = (...lines: string[]) =>
  scriptWords(['#!/bin/bash', ...lines].join('\n'), 'job.sh').map(({ text }) => text);
const settingsOf = (...lines: string[]) =>
  Object.fromEntries(
    [...readScript(['#!/bin/bash', ...lines].join('\n'), 'job.sh')].map(([name, { value }]) => [
      name,
      value,
    ]),
  );

describe('lines and words', () => {
  test.each([
    ['#SBATCH --a=1 -b 2', ['--a=1', '-b', '2']],
    ['#SBATCH\t-J  "two words"', ['-J', 'two words']],
    [`#SBATCH --job-name='it is' --x=a"b c"d`, ['--job-name=it is', '--x=ab cd']],
    ['#SBATCH --mem=4G # not --this', ['--mem=4G']],
    ['#SBATCH --comment=a#b', ['--comment=a']],
    ['#SBATCH --comment="a # b"', ['--comment=a # b']],
    ['#SBATCH --x=\\"q\\"', ['--x="q"']],
    ['#SBATCH my\\ job', ['my', 'job']],
    ['#SBATCH--nodes=2', ['--nodes=2']],
    ['#SBATCH --comment=""', ['--comment=']],
    ['##SBATCH --mem=1', []],
    [' #SBATCH --mem=1', []],
    ['# SBATCH --mem=1', []],
    ['#SBATCH', []],
  ])('%j', (line, expected) => {
    expect(wordsOf(line)).toEqual(expected);
  });

  test('the first command ends it; empty lines and comments do not', () => {
    expect(wordsOf('', '# text', '#SBATCH -a 1', '  ', 'echo hi', '#SBATCH -b 2')).toEqual([
      '-a',
      '1',
    ]);
  });

  test.each([
    ['echo hi\n', /first line does not start with #!/],
    ['#!/bin/sh\r\necho\r\n', /DOS line ends/],
    ['#!/bin/sh\n\0', /NUL/],
  ])('%j is refused', (script, message) => {
    expect(() => checkScript(script, 'job.sh')).toThrow(message);
  });

  test('a quote without its other end is named with its line', () => {
    expect(() => wordsOf('', '#SBATCH -J "x')).toThrow('job.sh line 3: a " has no other end');
  });
});

describe('options', () => {
  test('long, short, = and space, several on a line, flags together, beginnings', () => {
    const lines = [
      '#SBATCH --time=5 --mem 4G -c4 -N 2',
      '#SBATCH -HQ --exclusive --ntasks-per-n 3',
    ];
    expect(settingsOf(...lines)).toEqual({
      time: '5',
      mem: '4G',
      'cpus-per-task': '4',
      nodes: '2',
      hold: '',
      quiet: '',
      exclusive: '',
      'ntasks-per-node': '3',
    });
    expect(settingsOf('#SBATCH --exclusive=user --nice=10')).toEqual({
      exclusive: 'user',
      nice: '10',
    });
  });

  test.each([
    ['#SBATCH --tmie=5', 'line 2: unknown option --tmie'],
    ['#SBATCH -@ 5', 'line 2: unknown option -@'],
    ['#SBATCH --mem', 'line 2: --mem needs a value'],
    ['#SBATCH --hold=yes', 'line 2: --hold takes no value'],
    ['#SBATCH stray', 'line 2: "stray" is no option'],
    ['#SBATCH --gpus-per=1', 'line 2: unknown option --gpus-per'],
    ['#SBATCH hetjob', 'line 2: a heterogeneous job has no equivalent'],
  ])('%j is refused', (line, message) => {
    expect(() => settingsOf(line)).toThrow(message);
  });

  test('the command line goes before variables, those before the script', () => {
    const script = readScript('#!/bin/sh\n#SBATCH -t 1 -p a -q x --requeue\n', 'job.sh');
    const variables = readVariables({ SBATCH_TIMELIMIT: '2', SBATCH_PARTITION: 'b' });
    const { settings, rest } = readCommandLine(['-t', '3', '--no-requeue', 'job.sh', '-t', '9']);
    const merged = mergeSettings(script, variables, settings);
    expect(Object.fromEntries(merged)).toEqual({
      time: { value: '3', from: 'the command line' },
      partition: { value: 'b', from: 'SBATCH_PARTITION' },
      qos: { value: 'x', from: 'line 2' },
      'no-requeue': { value: '', from: 'the command line' },
    });
    expect(rest).toEqual(['job.sh', '-t', '9']);
  });

  test("Drover's own flags are told from sbatch's, and from the script's", () => {
    const typed = ['-N', '2', '--json', '--url', 'http://x', '-J', '--strict', 'a.sh', '--json'];
    expect(arrange(typed)).toEqual([
      ...['--json', '--url', 'http://x', '--'],
      ...['-N', '2', '-J', '--strict', 'a.sh', '--json'],
    ]);
  });
});

test.each([
  ['n1', ['n1']],
  ['n[1-3,7],login', ['n1', 'n2', 'n3', 'n7', 'login']],
  ['gpu[08-10].site', ['gpu08.site', 'gpu09.site', 'gpu10.site']],
  ['r[1-2]n[1-2]', ['r1n1', 'r1n2', 'r2n1', 'r2n2']],
])('hosts %s', (text, expected) => {
  expect(expandHosts(text)).toEqual(expected);
});

test.each(['n[3-1]', 'n[1', 'n[1-99999]'])('hosts %s are refused', (text) => {
  expect(() => expandHosts(text)).toThrow(/is no list of hosts/);
});
