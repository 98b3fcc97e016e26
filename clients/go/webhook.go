package heliograph

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// ErrInvalidWebhook is in every error of VerifyWebhook that the sender of the request caused: respond with 401.
var ErrInvalidWebhook = errors.New("heliograph: the webhook is not valid")

// Webhook is a request of the service, after its signature was checked.
type Webhook struct {
	// ID is the webhook-id, the same in every attempt: deduplicate by it.
	ID string
	// EventType is such as message.
	EventType string
	// EventID is upstream's id of what happened. Several events can have the same.
	EventID string
	// Event is a *MessageEvent, *StatusEvent, *PaymentEvent, *OrderEvent, *MediaReadyEvent, *TestEvent,
	// *WindowClosingEvent, *PreferenceEvent or *UpstreamEvent, and a json.RawMessage of the whole body for types that are added later.
	Event any
	// Body is the raw body.
	Body json.RawMessage
}

// WebhookOption changes how a webhook is checked.
type WebhookOption func(*webhookCheck)

type webhookCheck struct {
	tolerance time.Duration
	now       func() time.Time
}

// WithTolerance says how far the time of a webhook may be from ours: 5 minutes by default.
func WithTolerance(tolerance time.Duration) WebhookOption {
	return func(check *webhookCheck) { check.tolerance = tolerance }
}

// WithClock takes the place of time.Now.
func WithClock(now func() time.Time) WebhookOption {
	return func(check *webhookCheck) { check.now = now }
}

// VerifyWebhook checks the signature and the age of a webhook and returns its event. The body is as it came, not parsed and
// written again. The secret is that of the endpoint (whsec_…), or its public key (whpk_…) if it has one.
func VerifyWebhook(body []byte, headers http.Header, secret string, options ...WebhookOption) (*Webhook, error) {
	id, err := verified(body, headers, secret, options)
	if err != nil {
		return nil, err
	}
	return webhookOf(id, body), nil
}

// verified returns the webhook-id.
func verified(body []byte, headers http.Header, secret string, options []WebhookOption) (string, error) {
	check := webhookCheck{tolerance: 5 * time.Minute, now: time.Now}
	for _, option := range options {
		option(&check)
	}
	verify, err := verifierOf(secret)
	if err != nil {
		return "", err
	}
	id, timestamp := headers.Get("webhook-id"), headers.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if id == "" || err != nil {
		return "", fmt.Errorf("%w: headers are missing", ErrInvalidWebhook)
	}
	if age := check.now().Sub(time.Unix(seconds, 0)); age > check.tolerance || age < -check.tolerance {
		return "", fmt.Errorf("%w: its time is too far from ours", ErrInvalidWebhook)
	}
	signed := append([]byte(id+"."+timestamp+"."), body...)
	// While a secret is rotated, there are several signatures.
	for _, entry := range strings.Fields(headers.Get("webhook-signature")) {
		if verify(entry, signed) {
			return id, nil
		}
	}
	return "", fmt.Errorf("%w: no signature matches", ErrInvalidWebhook)
}

// verifierOf returns a function that checks one entry of webhook-signature.
func verifierOf(given string) (func(entry string, signed []byte) bool, error) {
	secret := strings.TrimSpace(given)
	if encoded, isPublic := strings.CutPrefix(secret, "whpk_"); isPublic {
		key, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || len(key) != ed25519.PublicKeySize {
			return nil, errors.New("heliograph: the public key is not one")
		}
		return func(entry string, signed []byte) bool {
			signature, isOurs := signatureOf(entry, "v1a,")
			return isOurs && ed25519.Verify(key, signed, signature)
		}, nil
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil || len(key) == 0 {
		return nil, errors.New("heliograph: the secret is not one")
	}
	return func(entry string, signed []byte) bool {
		signature, isOurs := signatureOf(entry, "v1,")
		mac := hmac.New(sha256.New, key)
		mac.Write(signed)
		return isOurs && hmac.Equal(signature, mac.Sum(nil))
	}, nil
}

func signatureOf(entry, version string) ([]byte, bool) {
	encoded, isOurs := strings.CutPrefix(entry, version)
	signature, err := base64.StdEncoding.DecodeString(encoded)
	return signature, isOurs && err == nil
}

// webhookOf never fails: a receiver that refused what is genuine would get it again for days.
func webhookOf(id string, body []byte) *Webhook {
	var envelope struct {
		EventType string `json:"eventType"`
		EventID   string `json:"eventId"`
	}
	_ = json.Unmarshal(body, &envelope)
	webhook := &Webhook{ID: id, EventType: envelope.EventType, EventID: envelope.EventID, Body: body, Event: json.RawMessage(body)}
	event := eventOf(envelope.EventType)
	if event == nil {
		return webhook
	}
	// A member of another type than today's is no reason to lose the event: Body has it all.
	if err := json.Unmarshal(body, event); err == nil {
		webhook.Event = event
	}
	return webhook
}

func eventOf(eventType string) any {
	switch eventType {
	case "message":
		return new(MessageEvent)
	case "status":
		return new(StatusEvent)
	case "payment":
		return new(PaymentEvent)
	case "order":
		return new(OrderEvent)
	case "media.ready":
		return new(MediaReadyEvent)
	case "test":
		return new(TestEvent)
	case "window.closing":
		return new(WindowClosingEvent)
	case "preference":
		return new(PreferenceEvent)
	case "message.batch":
		return new(MessageBatchEvent)
	}
	if strings.HasPrefix(eventType, "upstream.") {
		return new(UpstreamEvent)
	}
	return nil
}
