import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { api, type Customer, newestConversation } from './support/customer.ts';
import { startLosingProxy } from './support/losing-proxy.ts';
import { provideGo } from './support/programs.ts';
import { admin, description, PROJECT } from './support/stack.ts';

/** The Go client, against the real service. */

const run = promisify(execFile);
const CLIENT = join(PROJECT, 'clients', 'go');

let project: string;
let customer: Customer;
let isGoThere: boolean;
let platformKey: string;

beforeAll(async () => {
  isGoThere = await provideGo();
  if (!isGoThere) return;
  project = mkdtempSync(join(tmpdir(), 'heliograph-go-client-'));
  await run('go', ['mod', 'init', 'example.com/project'], { cwd: project });
  // As the README says.
  const readme = readFileSync(join(CLIENT, 'README.md'), 'utf8');
  const [, command = ''] = /^(go mod edit .*)$/m.exec(readme) ?? [];
  await run('sh', ['-euc', command.replace('/path/to/heliograph/clients/go', CLIENT)], { cwd: project });
  customer = await newestConversation();
  const scopes = ['read', 'tenants', 'wabas', 'keys', 'endpoints', 'portal_sessions', 'remove'].join(',');
  const made = await admin('platform-key', 'create', '--name', 'go', '--scopes', scopes);
  platformKey = String(made.platformKey);
});
afterAll(() => {
  if (isGoThere) rmSync(project, { recursive: true, force: true });
});

/** Builds a program in the project, vetted, and runs it. */
async function ran(name: string, code: string, variables: Record<string, string> = {}): Promise<string> {
  const folder = join(project, name);
  mkdirSync(folder);
  writeFileSync(join(folder, 'main.go'), code);
  await run('go', ['vet', `./${name}`], { cwd: project });
  await run('go', ['build', '-o', `bin/${name}`, `./${name}`], { cwd: project });
  const { apiUrl, caPath, tenants } = description();
  const env = {
    HELIOGRAPH_URL: apiUrl,
    HELIOGRAPH_API_KEY: tenants[0]?.apiKey ?? '',
    HELIOGRAPH_PLATFORM_KEY: platformKey,
    PHONE_NUMBER_ID: tenants[0]?.phoneNumberIds[0] ?? '',
    SSL_CERT_FILE: caPath,
    ...variables,
  };
  const { stdout } = await run(`bin/${name}`, [], { cwd: project, env: { PATH: process.env.PATH, ...env } });
  return stdout;
}

const program = (imports: string, body: string) => `package main

${imports}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
${body}
	return nil
}
`;

describe('the Go client', () => {
  test('passes its own tests and go vet, and needs nothing but the standard library', async ({ skip }) => {
    if (!isGoThere) return skip();
    await run('go', ['vet', './...'], { cwd: CLIENT });
    await run('go', ['test', './...'], { cwd: CLIENT });
    expect(readFileSync(join(CLIENT, 'go.mod'), 'utf8')).not.toContain('require');
    expect((await run('gofmt', ['-l', '.'], { cwd: CLIENT })).stdout).toBe('');
  });

  test('runs the examples of its README', async ({ skip }) => {
    if (!isGoThere) return skip();
    const readme = readFileSync(join(CLIENT, 'README.md'), 'utf8');
    const blocks = [...readme.matchAll(/^```go\n(.*?)^```$/gms)].map(([, block = '']) => block);
    const [imports = '', first = '', ...others] = blocks;
    const { data } = await api<{ data: { id: string }[] }>('GET', '/api/external/conversations?limit=1');
    const path = `/api/external/conversations/${data[0]?.id}/messages`;
    const messages = await api<{ data: { mediaUrl: string | null; serviceMessageId: string }[] }>(
      'GET',
      path,
    );
    const media = messages.data.find(({ mediaUrl }) => mediaUrl !== null)?.serviceMessageId ?? '';
    const values = {
      '"https://gateway.example"': 'os.Getenv("HELIOGRAPH_URL")',
      '"ck_…"': 'os.Getenv("HELIOGRAPH_API_KEY")',
      '"hp_…"': 'os.Getenv("HELIOGRAPH_PLATFORM_KEY")',
      '"800000000000111"': 'os.Getenv("PHONE_NUMBER_ID")',
      '"4711"': `"${media}"`,
      'order-7-ready': `order-${randomBytes(6).toString('hex')}`,
    };
    // Each example but the first in a scope of its own, as names come again.
    const scopes = others.map(
      (block) => `	if err := func() error {\n${block}\n	return nil\n}(); err != nil {\n	return err\n}`,
    );
    const code = Object.entries(values).reduce(
      (text, [example, value]) => {
        expect(text).toContain(example);
        return text.replaceAll(example, value);
      },
      program(imports, [first, ...scopes].join('\n')),
    );
    writeFileSync(join(project, 'mug.jpg'), JPEG);
    await ran('readme', code);
    expect(readFileSync(join(project, 'download')).equals(customer.picture)).toBe(true);
  });

  test('lists over pages what the service lists in one', async ({ skip }) => {
    if (!isGoThere) return skip();
    const imports = 'import (\n"context"\n"fmt"\n"log"\n"os"\n\nheliograph "heliograph/clients/go"\n)';
    const body = `
client := heliograph.New(os.Getenv("HELIOGRAPH_URL"), os.Getenv("HELIOGRAPH_API_KEY"))
count := 0
for event, err := range client.AllEvents(ctx, heliograph.ListEventsParams{Limit: 1, Order: "asc"}) {
	if err != nil {
		return err
	}
	fmt.Println(event.ID)
	if count++; count == 3 {
		break
	}
}
search := heliograph.ConversationSearch{Limit: 1, Customer: "${customer.phone}"}
for conversation, err := range client.AllFoundConversations(ctx, search) {
	if err != nil {
		return err
	}
	fmt.Println("found", conversation.ID)
}`;
    const { data } = await api<{ data: { id: string }[] }>('GET', '/api/external/events?limit=3&order=asc');
    const lines = (await ran('lists', program(imports, body))).trim().split('\n');
    expect(lines.slice(0, 3)).toEqual(data.map(({ id }) => id));
    expect(lines.slice(3)).toEqual([expect.stringMatching(/^found \d+$/)]);
  });

  test('streams what customers write', async ({ skip }) => {
    if (!isGoThere) return skip();
    const imports = 'import (\n"context"\n"fmt"\n"log"\n"os"\n\nheliograph "heliograph/clients/go"\n)';
    const body = `
client := heliograph.New(os.Getenv("HELIOGRAPH_URL"), os.Getenv("HELIOGRAPH_API_KEY"))
for event, err := range client.StreamEvents(ctx, "message", "") {
	if err != nil {
		return err
	}
	fmt.Println(event.EventType, event.ID, event.Cursor)
	break
}`;
    let hasEnded = false;
    const printed = ran('stream', program(imports, body)).finally(() => {
      hasEnded = true;
    });
    while (!hasEnded) {
      await newestConversation();
      await new Promise((resolve) => setTimeout(resolve, 1_000));
    }
    expect(await printed).toMatch(/^message evt_[0-9a-f]+ \S+\n$/);
  });

  test('provisions a tenant, follows the feed from a place, and verifies what a hook got', async ({
    skip,
  }) => {
    if (!isGoThere) return skip();
    const imports = `import (
"context"
"errors"
"fmt"
"io"
"log"
"net"
"net/http"
"os"

heliograph "heliograph/clients/go"
)`;
    const body = `
platform := heliograph.NewPlatform(os.Getenv("HELIOGRAPH_URL"), os.Getenv("HELIOGRAPH_PLATFORM_KEY"))
feed, err := platform.ListOperationEvents(ctx, &heliograph.ListOperationEventsParams{Types: "hook.none"})
if !heliograph.HasCode(err, heliograph.ErrorCodeInvalidParameter) {
	return fmt.Errorf("an unknown type: %v", err)
}
params := heliograph.ListOperationEventsParams{Limit: 100}
for more := true; more; more = feed.HasMore {
	if feed, err = platform.ListOperationEvents(ctx, &params); err != nil {
		return err
	}
	params.Cursor = *feed.NextCursor
}
listener, err := net.Listen("tcp", "127.0.0.1:0")
if err != nil {
	return err
}
secrets, got := make(chan string, 1), make(chan *heliograph.OperationEvent, 100)
go http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	secret := <-secrets
	secrets <- secret
	body, _ := io.ReadAll(r.Body)
	if _, err := heliograph.VerifyOperationEvent(append(body, ' '), r.Header, secret); !errors.Is(err, heliograph.ErrInvalidWebhook) {
		log.Fatal("another body was accepted")
	}
	event, err := heliograph.VerifyOperationEvent(body, r.Header, secret)
	if err != nil {
		log.Fatal(err)
	}
	got <- event
}))
hook, err := platform.PutOperationsHook(ctx, "go", heliograph.OperationsHookInput{
	URL: "http://" + listener.Addr().String() + "/operations", Types: []string{"tenant.*", "key.created"},
})
if err != nil {
	return err
}
secrets <- *hook.Secret
defer platform.DeleteOperationsHook(ctx, "go")
for range 2 {
	tenant, err := platform.PutTenant(ctx, "go-client", heliograph.TenantInput{BusinessName: "Go Store"})
	if err != nil {
		return err
	}
	if _, err := platform.PutWaba(ctx, *tenant.ExternalID, "970000000000001", heliograph.WabaInput{}); err != nil {
		return err
	}
	key, err := platform.PutTenantKey(ctx, "go-client", "970000000000001", "server", heliograph.TenantKeyInput{Name: "server", Scopes: []string{"send"}})
	if err != nil {
		return err
	}
	fmt.Println("key", key.APIKey != nil)
}
if _, err := platform.UpdateTenant(ctx, "go-client", heliograph.TenantChange{State: "suspended", SuspendReason: "The invoice is due."}); err != nil {
	return err
}
types := ""
for event, err := range platform.AllOperationEvents(ctx, params) {
	if err != nil {
		return err
	}
	types += " " + event.Type
}
fmt.Println("feed" + types)
for event := range got {
	fmt.Println("hook", event.Type, *event.Tenant.ExternalID)
	if event.Type == "tenant.suspended" {
		break
	}
}
count := 0
for tenant, err := range platform.AllTenants(ctx, heliograph.ListTenantsParams{Limit: 1}) {
	if err != nil {
		return err
	}
	if tenant.ExternalID != nil && *tenant.ExternalID == "go-client" {
		count++
	}
}
fmt.Println("tenants", count)
if _, err := platform.RemoveTenant(ctx, "go-client", heliograph.TenantRemoval{Confirm: "go-client"}); err != nil {
	return err
}`;
    const lines = (await ran('platform', program(imports, body))).trim().split('\n');
    const saved = 'waba.saved';
    const types = ['tenant.created', 'tenant.updated', saved, 'key.created', saved, 'tenant.suspended'];
    expect(lines).toEqual([
      'key true',
      'key false',
      `feed ${types.join(' ')}`,
      ...types.filter((type) => type !== saved).map((type) => `hook ${type} go-client`),
      'tenants 1',
    ]);
  });

  test('sends once though the responses get lost, and says which request failed', async ({ skip }) => {
    if (!isGoThere) return skip();
    const proxy = await startLosingProxy(description().apiUrl, 2);
    onTestFinished(() => proxy.close());
    const text = `only once ${randomBytes(6).toString('hex')}`;
    const imports =
      'import (\n"context"\n"errors"\n"fmt"\n"log"\n"os"\n\nheliograph "heliograph/clients/go"\n)';
    const body = `
client := heliograph.New(os.Getenv("HELIOGRAPH_URL"), os.Getenv("HELIOGRAPH_API_KEY"))
sent, err := client.Send(ctx, heliograph.SendText{
	PhoneNumberID: os.Getenv("PHONE_NUMBER_ID"), To: "+12025550143", Text: heliograph.SendTextText{Body: "${text}"},
})
if err != nil {
	return err
}
_, err = client.GetMessage(ctx, "999999999")
var failed *heliograph.Error
if !errors.As(err, &failed) || !heliograph.HasCode(err, heliograph.ErrorCodeNotFound) {
	return fmt.Errorf("the error was %w", err)
}
fmt.Println(sent.State, failed.Status, failed.RequestID)`;
    const printed = await ran('losing', program(imports, body), { HELIOGRAPH_URL: proxy.url });
    expect(printed).toMatch(/^accepted 404 req_/);
    expect(proxy.lost()).toBe(2);
    const sent = await (await fetch(`${description().sandboxUrl}/sandbox/sent`)).text();
    expect(sent.split(text)).toHaveLength(2);
  });
});

const JPEG = Buffer.concat([
  Buffer.from('ffd8ffe000104a46494600010100000100010000', 'hex'),
  randomBytes(5_000),
]);
