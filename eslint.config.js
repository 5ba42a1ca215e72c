// The JavaScript rules. Each one beyond the recommended set says why it is here.
import js from '@eslint/js';
import globals from 'globals';
import typescript from 'typescript-eslint';

/** A reader should know what a file is before reading it. */
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
  { ignores: ['**/node_modules/', '**/dist/', '**/.next/', 'target/', 'fuzz/target/', '**/.cache/'] },
  js.configs.recommended,
  {
    files: ['**/*.{js,mjs,cjs,jsx,ts,tsx}'],
    languageOptions: { ecmaVersion: 2024, globals: globals.node, parserOptions: { ecmaFeatures: { jsx: true } } },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    plugins: { hostler: { rules: { opening } } },
    rules: {
      'hostler/opening': 'error',
      'max-lines': ['error', 400], // longer than that, a file is two things
      'max-lines-per-function': ['error', { max: 80, skipComments: true }], // clippy's limit is 60; here a factory counts the functions it makes
      'no-unused-vars': ['error', { argsIgnorePattern: '^_', caughtErrors: 'all' }], // a name that starts with _ says "on purpose"
      'no-var': 'error', // one scope rule is enough
      'prefer-const': 'error', // `let` tells the reader that it changes
      eqeqeq: ['error', 'always', { null: 'ignore' }], // `== null` is the one useful case
      'no-throw-literal': 'error', // a thrown text has no stack
      'no-empty': ['error', { allowEmptyCatch: false }], // an error that is passed over needs a reason in a comment
    },
  },
  {
    files: ['**/*.{ts,tsx}'],
    extends: [typescript.configs.strict],
    rules: {
      'no-unused-vars': 'off', // the next one knows types as well
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', caughtErrors: 'all' }],
    },
  },
  {
    files: ['**/*.cjs'],
    languageOptions: { sourceType: 'commonjs' },
  },
  {
    // These run in browsers, as they are.
    files: ['examples/*/public/**'],
    languageOptions: { globals: globals.browser },
  },
  {
    // Bundled for browsers, or holding functions that a test hands to one.
    files: ['packages/render/test/react*/**', 'packages/render/test/react*', 'examples/islands/{src,test}/**'],
    languageOptions: { globals: { ...globals.node, ...globals.browser } },
  },
  {
    // These run on the server and in the browser; FILES is what its build puts in: the names of the styles.
    files: ['examples/hyperloop/src/{app/**,browser.jsx}'],
    languageOptions: { globals: { ...globals.browser, FILES: 'readonly' } },
  },
  {
    // One file whatever it holds: Hostler carries it in its binary.
    files: ['packages/worker/preload.cjs'],
    rules: { 'max-lines': ['error', 450] },
  },
  {
    // Apps as strangers write them: they are test data.
    files: ['**/test/apps/**', '**/tests/**/apps/**'],
    rules: { 'hostler/opening': 'off' },
  },
);
