// The lint rules for JavaScript and TypeScript. Each rule beyond the recommended set has its reason.
import js from '@eslint/js';
import globals from 'globals';
import typescript from 'typescript-eslint';

/** Each file must open with a comment that says what it is. */
const opening = {
  meta: { type: 'suggestion', schema: [] },
  create: (context) => ({
    Program(program) {
      const first = context.sourceCode.getAllComments().find(({ type }) => type !== 'Shebang');
      if (first?.type === 'Line' && first.range[0] <= (program.body[0]?.range[0] ?? 0) && first.value.length > 20) return;
      context.report({ loc: { line: 1, column: 0 }, message: 'Open the file with one // sentence: what it is, and what it does not know.' });
    },
  }),
};

export default typescript.config(
  { ignores: ['**/node_modules/', '**/dist/', '**/.next/', 'target/', 'fuzz/target/', '**/.cache/', 'crates/hostler/src/admin/live/page/vendor/'] },
  js.configs.recommended,
  {
    files: ['**/*.{js,mjs,cjs,jsx,ts,tsx}'],
    languageOptions: { ecmaVersion: 2024, globals: globals.node, parserOptions: { ecmaFeatures: { jsx: true } } },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    plugins: { hostler: { rules: { opening } } },
    rules: {
      'hostler/opening': 'error',
      'max-lines': ['error', 400], // a longer file should be two
      'max-lines-per-function': ['error', { max: 80, skipComments: true }], // clippy's limit is 60; here the lines of inner functions count too
      'no-unused-vars': ['error', { argsIgnorePattern: '^_', caughtErrors: 'all' }], // a leading _ marks a name that is unused on purpose
      'no-var': 'error', // let and const have block scope
      'prefer-const': 'error', // `let` means that the value changes
      eqeqeq: ['error', 'always', { null: 'ignore' }], // `== null` is the one useful case
      'no-throw-literal': 'error', // only an Error has a stack trace
      'no-empty': ['error', { allowEmptyCatch: false }], // an error that is ignored needs a comment with the reason
    },
  },
  {
    files: ['**/*.{ts,tsx}'],
    extends: [typescript.configs.strict],
    rules: {
      'no-unused-vars': 'off', // the TypeScript rule below replaces it
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', caughtErrors: 'all' }],
    },
  },
  {
    files: ['**/*.cjs'],
    languageOptions: { sourceType: 'commonjs' },
  },
  {
    // Files that browsers load unchanged.
    files: ['examples/*/public/**', 'crates/hostler/src/server/development/*.js', 'crates/hostler/src/admin/live/page/*.js'],
    languageOptions: { globals: globals.browser },
  },
  {
    // Files that are bundled for browsers, or whose functions a test runs in a browser.
    files: [
      'packages/render/test/react*/**',
      'packages/render/test/react*',
      'packages/testkit/test/{development,event-source}.test.mjs',
      'packages/guides/test/**',
      'examples/islands/{src,test}/**',
    ],
    languageOptions: { globals: { ...globals.node, ...globals.browser } },
  },
  {
    // Files that run on the server and in the browser. The build defines FILES: the names of the style sheets.
    files: ['examples/hyperloop/src/{app/**,browser.jsx}'],
    languageOptions: { globals: { ...globals.browser, FILES: 'readonly' } },
  },
  {
    // It must be a single file, because Hostler contains it in its binary.
    files: ['packages/worker/preload.cjs'],
    rules: { 'max-lines': ['error', 925] },
  },
  {
    // Test data: apps of other authors.
    files: ['**/test/apps/**', '**/tests/**/apps/**'],
    rules: { 'hostler/opening': 'off' },
  },
);
