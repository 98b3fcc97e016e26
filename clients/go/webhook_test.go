package heliograph

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	mathrand "math/rand"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"testing/quick"
	"time"
)

const (
	secret      = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	otherSecret = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	message     = `{"eventType": "message", "eventId": "wamid.1", "phoneNumberId": "1", "occurredAt": "2026-11-21T09:30:00.123Z",
 "data": {"message": {"id": "wamid.1", "type": "text", "text": {"body": "é 👋"}, "new": 90071992547409931}}}`
)

func signed(secret, id string, at time.Time, body string) string {
	key, _ := base64.StdEncoding.DecodeString(secret[len("whsec_"):])
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + strconv.FormatInt(at.Unix(), 10) + "." + body))
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func headersOf(at time.Time, signatures string) http.Header {
	headers := http.Header{}
	headers.Set("webhook-id", "evt_1")
	headers.Set("webhook-timestamp", strconv.FormatInt(at.Unix(), 10))
	headers.Set("webhook-signature", signatures)
	return headers
}

// The example of the specification of Standard Webhooks.
func TestTheExampleOfTheSpecificationIsVerified(t *testing.T) {
	at := time.Unix(1614265330, 0)
	headers := headersOf(at, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
	headers.Set("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek")
	clock := WithClock(func() time.Time { return at })
	if _, err := VerifyWebhook([]byte(`{"test": 2432232314}`), headers, secret, clock); err != nil {
		t.Error(err)
	}
}

func TestTheEventOfASignedBody(t *testing.T) {
	now := time.Now()
	for _, list := range []string{
		signed(secret, "evt_1", now, message),
		signed(otherSecret, "evt_1", now, message) + " v1a,AAAA v2,x " + signed(secret, "evt_1", now, message),
	} {
		webhook, err := VerifyWebhook([]byte(message), headersOf(now, list), secret)
		if err != nil {
			t.Fatal(err)
		}
		event, isMessage := webhook.Event.(*MessageEvent)
		if !isMessage || event.Data.Message.Text.Body != "é 👋" || webhook.ID != "evt_1" || webhook.EventID != "wamid.1" {
			t.Errorf("the webhook was %+v", webhook)
		}
		if string(event.Data.Message.AdditionalProperties["new"]) != "90071992547409931" {
			t.Error("a member without a type lost digits")
		}
	}
}

func TestAnEventOfAnotherTypeIsItsBody(t *testing.T) {
	now := time.Now()
	for body, eventType := range map[string]string{
		`{"eventType": "later", "eventId": "1", "data": 1}`:                "later",
		`{"eventType": "message", "eventId": "1", "data": {"message": 1}}`: "message",
		`no JSON`: "",
	} {
		webhook, err := VerifyWebhook([]byte(body), headersOf(now, signed(secret, "evt_1", now, body)), secret)
		if err != nil {
			t.Fatal(err)
		}
		if raw, isRaw := webhook.Event.(json.RawMessage); !isRaw || string(raw) != body || webhook.EventType != eventType {
			t.Errorf("the webhook was %+v", webhook)
		}
	}
}

func TestWebhooksThatAreRefused(t *testing.T) {
	now := time.Now()
	signature := signed(secret, "evt_1", now, message)
	old := now.Add(-6 * time.Minute)
	for name, one := range map[string]struct {
		body    string
		headers http.Header
		secret  string
	}{
		"another body":    {message + " ", headersOf(now, signature), secret},
		"another secret":  {message, headersOf(now, signature), otherSecret},
		"no headers":      {message, http.Header{}, secret},
		"no signature":    {message, headersOf(now, ""), secret},
		"another version": {message, headersOf(now, "v2"+signature[2:]), secret},
		"an old one":      {message, headersOf(old, signed(secret, "evt_1", old, message)), secret},
		"an early one":    {message, headersOf(now.Add(6*time.Minute), signature), secret},
	} {
		if _, err := VerifyWebhook([]byte(one.body), one.headers, one.secret); !errors.Is(err, ErrInvalidWebhook) {
			t.Errorf("%s: the error was %v", name, err)
		}
	}
	if _, err := VerifyWebhook([]byte(message), headersOf(old, signed(secret, "evt_1", old, message)), secret, WithTolerance(time.Hour)); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "whsec_", "whsec_?", "whpk_AAAA"} {
		if _, err := VerifyWebhook([]byte(message), headersOf(now, signature), bad); err == nil || errors.Is(err, ErrInvalidWebhook) {
			t.Errorf("with the secret %q the error was %v", bad, err)
		}
	}
}

func TestPublicKeys(t *testing.T) {
	now := time.Now()
	public, private, _ := ed25519.GenerateKey(nil)
	other, _, _ := ed25519.GenerateKey(nil)
	content := []byte("evt_1." + strconv.FormatInt(now.Unix(), 10) + "." + message)
	list := signed(secret, "evt_1", now, message) + " v1a," + base64.StdEncoding.EncodeToString(ed25519.Sign(private, content))
	keyOf := func(key ed25519.PublicKey) string { return "whpk_" + base64.StdEncoding.EncodeToString(key) }
	if _, err := VerifyWebhook([]byte(message), headersOf(now, list), keyOf(public)); err != nil {
		t.Error(err)
	}
	if _, err := VerifyWebhook([]byte(message), headersOf(now, list), keyOf(other)); !errors.Is(err, ErrInvalidWebhook) {
		t.Errorf("with another key the error was %v", err)
	}
}

// noise makes headers and bodies as strangers send them.
type noise struct {
	ID, Timestamp, Signatures, Body string
}

func (noise) Generate(random *mathrand.Rand, size int) reflect.Value {
	text := func() string {
		raw := make([]byte, random.Intn(size+1))
		random.Read(raw)
		switch random.Intn(3) {
		case 0:
			return base64.StdEncoding.EncodeToString(raw)
		case 1:
			return []string{"***", "é", "=", "", "\x00", "{}", "[[[["}[random.Intn(7)]
		}
		return string(raw)
	}
	times := []string{strconv.FormatInt(time.Now().Unix(), 10), strings.Repeat("9", 4301), "9223372036854775807", "-9223372036854775808", "1e3", text()}
	list := make([]string, random.Intn(4))
	for i := range list {
		list[i] = []string{"v1,", "v1a,", "v2,", "v1", ""}[random.Intn(5)] + text()
	}
	return reflect.ValueOf(noise{text(), times[random.Intn(len(times))], strings.Join(list, " "), text()})
}

func TestWhoeverSendsItTheErrorIsErrInvalidWebhook(t *testing.T) {
	public, _, _ := ed25519.GenerateKey(nil)
	keys := []string{secret, "whpk_" + base64.StdEncoding.EncodeToString(public)}
	isRefused := func(given noise) bool {
		headers := http.Header{}
		headers.Set("webhook-id", given.ID)
		headers.Set("webhook-timestamp", given.Timestamp)
		headers.Set("webhook-signature", given.Signatures)
		for _, key := range keys {
			if _, err := VerifyWebhook([]byte(given.Body), headers, key); !errors.Is(err, ErrInvalidWebhook) {
				return false
			}
		}
		return true
	}
	if err := quick.Check(isRefused, &quick.Config{MaxCount: 5_000}); err != nil {
		t.Error(err)
	}
}

func TestASecretFromAFileMayEndWithALineBreak(t *testing.T) {
	now := time.Now()
	if _, err := VerifyWebhook([]byte(message), headersOf(now, signed(secret, "evt_1", now, message)), secret+"\r\n"); err != nil {
		t.Error(err)
	}
}
