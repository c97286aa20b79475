/**
 * Lint rules for the shape of the source: which folder may import which (`walls`), what the pure
 * folders may not touch (`pure`), and where SQL lives (`sql`). Loaded by oxlint as a plugin.
 */
import { builtinModules } from 'node:module';
import { posix } from 'node:path';

/** What each folder under src/ may import besides itself. Nothing may import bin. */
export const ALLOWED: Record<string, readonly string[]> = {
  lib: [],
  model: ['lib'],
  core: ['model', 'lib'],
  state: ['core', 'model', 'lib'],
  protocol: ['model', 'lib'],
  store: ['state', 'model', 'lib'],
  blobs: ['model', 'lib'],
  secrets: ['model', 'lib'],
  exchange: ['model', 'lib'],
  notify: ['model', 'lib'],
  providers: ['model', 'lib'],
  peers: ['protocol', 'model', 'lib'],
  control: [
    'state',
    'core',
    'protocol',
    'store',
    'blobs',
    'secrets',
    'exchange',
    'notify',
    'providers',
    'peers',
    'model',
    'lib',
  ],
  gateway: ['protocol', 'model', 'lib', 'blobs'],
  agent: ['protocol', 'model', 'lib'],
  connector: ['protocol', 'model', 'lib'],
  cli: ['protocol', 'model', 'lib'],
};
const EVERYTHING_FROM = 'bin';

const PURE = new Set(['core', 'state']);
const IMPURE_GLOBALS = new Set([
  'Date',
  'performance',
  'crypto',
  'console',
  'process',
  'fetch',
  'globalThis',
  'global',
  'setTimeout',
  'setInterval',
  'setImmediate',
  'queueMicrotask',
]);
/** Libraries that read a clock, roll dice or write somewhere. Their types may be named. */
const IMPURE_FILES = /^lib\/(clock|log|config)\.ts$/;
const SQL_MODULES = new Set(['node:sqlite', 'pg', 'kysely']);

interface Node {
  type: string;
  name?: string;
  value?: unknown;
  source?: Node | null;
  importKind?: string;
  exportKind?: string;
  specifiers?: (Node & { imported?: Node })[];
  object?: Node;
  property?: Node;
}
interface Reference {
  identifier: Node;
  isTypeReference?: boolean;
}
interface Scope {
  through: Reference[];
  variables: { defs: unknown[]; references: Reference[] }[];
}
interface Context {
  filename: string;
  sourceCode: { scopeManager: { globalScope: Scope | null } };
  report(problem: { node: Node; message: string }): void;
}
type Visitor = Record<string, (node: Node) => void>;
interface ImportSeen {
  node: Node;
  specifier: string;
  typeOnly: boolean;
}

const walls = rule((file, context) =>
  onImport((seen) => {
    const target = resolveInSource(file, seen.specifier);
    if (target === undefined) return;
    const reason = wallReason(file, target);
    if (reason) context.report({ node: seen.node, message: reason });
  }),
);

const pure = rule((file, context) => {
  if (!PURE.has(folderOf(file))) return {};
  const report = (node: Node, what: string): void =>
    context.report({
      node,
      message: `${what} in ${folderOf(file)}/, which is pure: take it as an argument`,
    });
  return {
    ...onImport((seen) => {
      const { node, specifier } = seen;
      const bare = specifier.split('/')[0] ?? '';
      if (specifier.startsWith('node:') || builtinModules.includes(bare)) report(node, specifier);
      if (bare === 'pino') report(node, 'a logger');
      const target = resolveInSource(file, specifier) ?? '';
      if (IMPURE_FILES.test(target) && !seen.typeOnly) report(node, `a value of ${target}`);
      if (target === 'lib/random.ts' && importsName(node, 'systemRandom')) {
        report(node, 'systemRandom');
      }
    }),
    MemberExpression(node) {
      if (node.object?.name === 'Math' && node.property?.name === 'random') {
        report(node, 'Math.random');
      }
    },
    'Program:exit'() {
      for (const { identifier } of globalReferences(context)) {
        if (IMPURE_GLOBALS.has(identifier.name ?? '')) report(identifier, identifier.name ?? '');
      }
    },
  };
});

const sql = rule((file, context) => {
  // The gateway's read cache is its own small file, and the one exception.
  if (folderOf(file) === 'store' || file.startsWith('gateway/cache/')) return {};
  return onImport(({ node, specifier }) => {
    if (!SQL_MODULES.has(specifier)) return;
    context.report({ node, message: `${specifier} outside store/: the only SQL is there` });
  });
});

export default { meta: { name: 'drover' }, rules: { walls, pure, sql } };

/** Why `file` may not import `target` (both relative to src/), or undefined when it may. */
export function wallReason(file: string, target: string): string | undefined {
  const from = folderOf(file);
  const to = folderOf(target);
  if (to === '..') return `src/ may not import ${target}, which is outside it`;
  if (from === to || from === EVERYTHING_FROM) return undefined;
  if (to === EVERYTHING_FROM) return 'nothing may import bin/: it wires the parts';
  const allowed = ALLOWED[from];
  if (!allowed) return `the folder ${from}/ has no line in tools/lint/walls.ts`;
  if (allowed.includes(to)) return undefined;
  return `${from}/ may not import ${to}/; it may import ${allowed.join(', ') || 'nothing'}`;
}

/** Runs on files under src/ that are not tests; a test may reach across to set its scene. */
function rule(create: (file: string, context: Context) => Visitor): {
  create(context: Context): Visitor;
} {
  return {
    create(context) {
      const path = context.filename.replaceAll('\\', '/');
      const at = path.lastIndexOf('/src/');
      if (at < 0 || path.endsWith('.test.ts') || path.includes('/protocol/gen/')) return {};
      return create(path.slice(at + '/src/'.length), context);
    },
  };
}

/** Static, type-only, re-exporting and dynamic imports, and `import('x').Y` in types. */
function onImport(visit: (seen: ImportSeen) => void): Visitor {
  const from = (node: Node, source: Node | null | undefined, typeOnly: boolean): void => {
    const specifier = source?.value;
    if (typeof specifier === 'string') visit({ node, specifier, typeOnly });
  };
  const declared = (node: Node): void =>
    from(node, node.source, node.importKind === 'type' || node.exportKind === 'type');
  return {
    ImportDeclaration: declared,
    ExportNamedDeclaration: declared,
    ExportAllDeclaration: declared,
    ImportExpression: (node) => from(node, node.source, false),
    TSImportType: (node) => from(node, node.source, true),
  };
}

/** The path below src/ that a relative specifier names; undefined for a package. */
function resolveInSource(file: string, specifier: string): string | undefined {
  if (!specifier.startsWith('.')) return undefined;
  return posix.normalize(posix.join(posix.dirname(file), specifier));
}

function folderOf(file: string): string {
  return file.split('/')[0] ?? '';
}

function importsName(node: Node, name: string): boolean {
  return (node.specifiers ?? []).some((specifier) => specifier.imported?.name === name);
}

/** Uses of names that no code in the file declares. */
function globalReferences(context: Context): Reference[] {
  const scope = context.sourceCode.scopeManager.globalScope;
  if (!scope) return [];
  const builtIn = scope.variables.filter((variable) => variable.defs.length === 0);
  const all = [...scope.through, ...builtIn.flatMap((variable) => variable.references)];
  return [...new Set(all)].filter((reference) => reference.isTypeReference !== true);
}
