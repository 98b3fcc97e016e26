import { HtmlValidate } from 'html-validate';

/**
 * The recommended rules, but for taste and for what is meant: serialized pages are spelt by the browser, the button of a
 * plain form submits it, tables that become cards keep their roles, check boxes of one group share a name, and what scrolls is a region of its own.
 */
const validator = new HtmlValidate({
  extends: ['html-validate:recommended', 'html-validate:a11y'],
  rules: {
    'attribute-boolean-style': 'off',
    'attribute-empty-style': 'off',
    'doctype-style': 'off',
    'form-dup-name': 'off',
    'long-title': 'off',
    'no-implicit-button-type': 'off',
    'no-redundant-role': 'off',
    'no-trailing-whitespace': 'off',
    'prefer-native-element': 'off',
    'void-style': 'off',
  },
});

/** What the standard finds wrong with a page. */
export async function markupProblems(markup: string): Promise<string[]> {
  const report = await validator.validateString(markup);
  return report.results.flatMap(({ messages }) =>
    messages.map(({ ruleId, message, line }) => `${ruleId}, line ${line}: ${message}`),
  );
}
