import type { RequestError } from '../../../platform/request-input.ts';
import { mayUse } from '../access/link-access.ts';
import { orShown } from '../access/page-error.ts';
import { sendPage } from '../access/send-page.ts';
import { postForm } from '../components/form.ts';
import type { Notice } from '../components/notice.ts';
import { type FormValues, formValues } from '../form-values.ts';
import { type Child, html, type Markup, nothing } from '../markup.ts';
import type { PageView } from '../page.ts';
import type { PortalApp, PortalContext } from '../portal-app.ts';
import { bodyOf, type FormField, fieldMarkup } from './form-fields.ts';
import { follow, type Next, queryOf } from './view-page.ts';
import { type Place, Visit } from './visit.ts';

/** A form that was sent and not accepted: it is shown again with what it had. */
export type Refused = { values: FormValues; error: RequestError };

export type Given<Name extends string> = { text(name: Name): string; list(name: Name): string[] };

/** A form: its fields, and what it does. `Subject` is what the page is about. */
export type Form<Name extends string, Subject> = {
  action: string;
  fields: readonly FormField<Name, Subject>[];
  /** Over the form, where the page has more than it. */
  heading?: string;
  note?: Child;
  button: string;
  /** Left out: the main action of the page. */
  look?: 'danger' | 'plain';
  values?: (subject: Subject, visit: Visit) => Partial<Record<Name, string | readonly string[]>>;
  /** Throws RequestError for what is wrong. */
  submit: (visit: Visit, given: Given<Name>, subject: Subject) => Promise<Next>;
  /** The field that an error is about. Left out: that of its parameter. */
  fieldOf?: (error: RequestError) => string | null;
};

type ShownForm<Subject> = {
  subject: Subject;
  refused?: Refused | null;
  cancelHref?: string | null;
  /** What stands behind the path that it is sent to: the part of a list that it leads back to. */
  search?: string;
};

export function formCard<Name extends string, Subject>(
  visit: Visit,
  form: Form<Name, Subject>,
  shown: ShownForm<Subject>,
): Markup {
  if (!mayUse(visit.formToken.link, 'POST', form.action)) return nothing;
  const { heading, note } = form;
  const head = html`${heading !== undefined && html`<h2>${heading}</h2>`}${note && html`<p class="hint">${note}</p>`}`;
  return html`<section class="card">${head}${formMarkup(visit, form, shown)}</section>`;
}

/** The form alone. What is wrong stands beside its field. */
export function formMarkup<Name extends string, Subject>(
  visit: Visit,
  form: Form<Name, Subject>,
  { subject, refused = null, cancelHref = null, search = '' }: ShownForm<Subject>,
): Markup {
  const first: Readonly<Record<string, string | readonly string[] | undefined>> =
    form.values?.(subject, visit) ?? {};
  const wrong = refused === null ? null : fieldOf(form, refused.error);
  const fields = shownFields(form, subject).map((field) =>
    fieldMarkup(field, {
      subject,
      values:
        refused === null || field.widget === 'hidden'
          ? [first[field.name] ?? ''].flat()
          : keptValues(field, refused),
      error: field.name === wrong ? (refused?.error.message ?? null) : null,
    }),
  );
  const cancel = cancelHref !== null && html`<a class="button" href="${cancelHref}">Cancel</a>`;
  const buttons = html`<div class="buttons"><button ${form.look !== 'plain' && html`class="${form.look ?? 'primary'}"`}>${form.button}</button>${cancel}</div>`;
  return postForm(
    visit.formToken,
    `${visit.at(form.action)}${search}`,
    html`${fields.map((field) => [field, '\n'])}${buttons}`,
  );
}

/** A secret is not sent back, and a confirmation must be typed each time. */
function keptValues({ name, type, isTypedAgain }: FormField<string, never>, { values }: Refused): string[] {
  return type === 'password' || isTypedAgain ? [] : values.list(name);
}

function shownFields<Name extends string, Subject>({ fields }: Form<Name, Subject>, subject: Subject) {
  return fields.filter(({ isShown }) => isShown === undefined || isShown(subject));
}

function fieldOf<Name extends string, Subject>(
  form: Form<Name, Subject>,
  error: RequestError,
): string | null {
  return form.fieldOf === undefined ? error.param : form.fieldOf(error);
}

/** What is wrong with a form and has no field to stand beside. */
export function unplaced<Name extends string, Subject>(
  form: Form<Name, Subject>,
  subject: Subject,
  refused: Refused | null,
): Notice | null {
  if (refused === null) return null;
  const wrong = fieldOf(form, refused.error);
  if (shownFields(form, subject).some(({ name }) => name === wrong)) return null;
  return { kind: 'error', text: refused.error.message };
}

type FormAction<Name extends string, Subject> = Pick<Place, 'access'> & {
  active?: string;
  form: Form<Name, Subject>;
  load?: (visit: Visit) => Promise<Subject>;
  show: (visit: Visit, refused: Refused, subject: Subject) => Next | Promise<Next>;
  query?: readonly string[];
  /** How much of it may be sent, where that is more than a form usually has. */
  bodyBytes?: number | undefined;
};

/** The route that takes a form: it leads on, or shows the form again with what is wrong. */
export function formAction<Name extends string, Subject>(
  app: PortalApp,
  context: PortalContext,
  { access, active = '', form, load = noSubject, show, query = [], bodyBytes }: FormAction<Name, Subject>,
): void {
  const schema = { querystring: queryOf(query), body: bodyOf(form.fields) };
  const limit = bodyBytes === undefined ? {} : { bodyLimit: bodyBytes };
  app.post(form.action, { config: access, schema, ...limit }, async (request, reply) => {
    const visit = new Visit(request, reply, context);
    const values = formValues(request.body);
    const subject = await load(visit);
    const next = await orShown<Next>(
      () => form.submit(visit, values, subject),
      async (error) => {
        const shown = await show(visit, { values, error }, subject);
        return typeof shown === 'object' && 'title' in shown ? { ...shown, error } : shown;
      },
    );
    return follow(reply, next, active);
  });
}

async function noSubject<Subject>(): Promise<Subject> {
  return null as Subject;
}

type PageText<Subject, Text> = Text | ((subject: Subject, visit: Visit) => Text);

export type FormPage<Name extends string, Subject> = Place &
  Omit<Form<Name, Subject>, 'action'> &
  Pick<PageView, 'done' | 'assets' | 'viewer'> &
  Pick<FormAction<Name, Subject>, 'bodyBytes'> & {
    /** The route that the form is sent to. Left out: the path. */
    action?: string;
    /** The form stands on another page; this one only shows what is wrong with it. */
    isPart?: boolean;
    instead?: (visit: Visit) => string | null;
    /** Who sees the page without the form, where those are more than may send it. */
    seenBy?: Place['access'];
    title: PageText<Subject, string>;
    lead?: PageText<Subject, Child>;
    trail?: (visit: Visit, subject: Subject) => NonNullable<PageView['trail']>;
    /** The subject of the page. Throws where there is none. Left out: the page has none. */
    load?: (visit: Visit) => Promise<Subject>;
    /** What stands over the form, and what stands under it. */
    above?: (subject: Subject, visit: Visit) => Child;
    below?: (subject: Subject, visit: Visit) => Child;
    query?: readonly string[];
  };

/** A page with a form, and the route that takes it. Returns the form, for the pages that it stands on. */
export function formPage<Name extends string, Subject>(
  app: PortalApp,
  context: PortalContext,
  page: FormPage<Name, Subject>,
): Form<Name, Subject> {
  const { access, active, query = [], load = noSubject } = page;
  const form: Form<Name, Subject> = { ...page, action: page.action ?? page.path };
  const show = (visit: Visit, refused: Refused | null, subject: Subject): PageView => {
    const trail = page.trail?.(visit, subject) ?? [];
    // A form with a notice after it leads back to its own page.
    const cancelHref = page.done === undefined ? (trail.at(-1)?.href ?? null) : null;
    const shown = { subject, refused, cancelHref };
    const maySend = page.seenBy === undefined || visit.mayChange;
    // Before the sign-in, the whole page is one card.
    const isCard = page.viewer === null;
    return {
      ...(isCard && { viewer: null }),
      title: textOf(page.title, subject, visit),
      lead: textOf(page.lead ?? null, subject, visit),
      active,
      trail,
      done: page.done ?? {},
      assets: page.assets ?? [],
      notice: unplaced(form, subject, refused),
      body: html`${page.above?.(subject, visit)}${maySend && (isCard ? formMarkup : formCard)(visit, form, shown)}${page.below?.(subject, visit)}`,
    };
  };
  if (!page.isPart) {
    app.get(
      page.path,
      { config: page.seenBy ?? access, schema: { querystring: queryOf(query) } },
      async (request, reply) => {
        const visit = new Visit(request, reply, context);
        const elsewhere = page.instead?.(visit) ?? null;
        if (elsewhere !== null) return reply.redirect(elsewhere, 303);
        return sendPage(reply, show(visit, null, await load(visit)));
      },
    );
  }
  const { bodyBytes } = page;
  formAction(app, context, { access, active, form, load, show, bodyBytes });
  return page.isPart && typeof page.title === 'string' ? { heading: page.title, ...form } : form;
}

function textOf<Subject, Text>(text: PageText<Subject, Text>, subject: Subject, visit: Visit): Text {
  return typeof text === 'function'
    ? (text as (subject: Subject, visit: Visit) => Text)(subject, visit)
    : text;
}
