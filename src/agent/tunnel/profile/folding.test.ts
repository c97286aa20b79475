/** Profilers' own formats, as they write them, made into folded stacks. */
import { expect, test } from 'vitest';
import { foldCpuProfile } from './node.ts';
import { foldPerf } from './perf.ts';

test('perf script: outermost first, equal stacks counted, offsets and unknowns tidied', () => {
  const script = `python3 18893 24747.026073:   10101010 cpu-clock:ppp:
\t           fac3a _PyEval_EvalFrameDefault+0xca (/usr/lib/libpython3.11.so.1.0)
\t    7f754a2da940 [unknown] (/usr/lib/libm.so.6)
\t    7f754aa56240 [unknown] ([unknown])

my app 12/13 [001] 1.5:  1 cycles:
\t  1 std::map<int; int>::find(int)+0x1 (/bin/app)

python3 18893 24747.063867:   10101010 cpu-clock:ppp:
\t           ff2ce _PyEval_EvalFrameDefault+0x475e (/usr/lib/libpython3.11.so.1.0)
\t    7f754a2da940 [unknown] (/usr/lib/libm.so.6)
\t    7f754aa56240 [unknown] ([unknown])
`;
  expect(foldPerf(script)).toBe(
    'python3;[unknown];[libm.so.6];_PyEval_EvalFrameDefault 2\n' +
      'my app;std::map<int: int>::find(int) 1\n',
  );
  expect(foldPerf('')).toBe('');
});

test("Node's profile: by samples, without the root and idle time", () => {
  const node = (id: number, functionName: string, children: number[] = [], url = '') => ({
    id,
    callFrame: { functionName, url, lineNumber: 4 },
    children,
  });
  const nodes = [
    node(1, '(root)', [2, 3]),
    node(2, '(idle)'),
    node(3, 'main', [4], 'file:///app/a.js'),
    node(4, ''),
  ];
  expect(foldCpuProfile({ nodes, samples: [2, 3, 4, 4, 1] })).toBe(
    'main (a.js:5) 1\nmain (a.js:5);(anonymous) 2\n',
  );
});
