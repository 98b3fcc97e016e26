import DefaultTheme from 'vitepress/theme-without-fonts';
import './style.css';

export default {
  extends: DefaultTheme,
  enhanceApp({ app }) {
    // Without it Vue logs what a page throws, and the build goes on with an empty page.
    if (import.meta.env.SSR) app.config.throwUnhandledErrorInProduction = true;
  },
};
