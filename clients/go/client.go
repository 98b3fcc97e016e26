// Package heliograph is a client of Heliograph's External API and its webhooks.
package heliograph

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"time"
	"unicode"
)

// Version is that of the service whose API this is.
const Version = "0.2.0"

// Doer makes one HTTP request; *http.Client is one.
type Doer interface {
	Do(*http.Request) (*http.Response, error)
}

// Client has a method for each operation of the External API. It may be used by several goroutines.
type Client struct {
	baseURL string
	apiKey  string
	doer    Doer
	policy  policy
	// err says that address or key cannot be one: no request is made.
	err error
}

// Option changes what New makes.
type Option func(*Client)

// WithHTTPClient makes requests with a client of yours. It should have no Timeout: WithTimeout is for that.
func WithHTTPClient(doer Doer) Option { return func(c *Client) { c.doer = doer } }

// WithRetries says how often a read or a send is repeated after a temporary failure: 3 times by default, 0: never.
func WithRetries(retries int) Option { return func(c *Client) { c.policy.retries = retries } }

// WithTimeout says how long the service may be silent, before its response and within it: 30 seconds by default, 0: for ever.
func WithTimeout(timeout time.Duration) Option { return func(c *Client) { c.policy.timeout = timeout } }

// WithMaxRetryAfter says for how long a Retry-After is waited for: a minute by default. After a longer one the error is returned.
func WithMaxRetryAfter(wait time.Duration) Option {
	return func(c *Client) { c.policy.maxRetryAfter = wait }
}

// New makes a client. The base URL is such as https://gateway.example; the API key begins with ck_ and belongs to one WABA.
// Spaces and line breaks around them, as of a file, are dropped. With what cannot be an address or a key, every method
// returns an error at once.
func New(baseURL, apiKey string, options ...Option) *Client {
	return newClient(baseURL, apiKey, "API key is none: it is ck_", options)
}

func newClient(baseURL, apiKey, whatKeyIs string, options []Option) *Client {
	c := &Client{
		baseURL: strings.TrimRight(strings.TrimSpace(baseURL), "/"),
		apiKey:  strings.TrimFunc(apiKey, func(r rune) bool { return unicode.IsSpace(r) || r == '\ufeff' }),
		doer:    &http.Client{},
		policy:  policy{retries: 3, timeout: 30 * time.Second, maxRetryAfter: time.Minute},
	}
	c.err = problemOf(c.baseURL, c.apiKey, whatKeyIs)
	for _, option := range options {
		option(c)
	}
	return c
}

// problemOf never shows the key.
func problemOf(baseURL, apiKey, whatKeyIs string) error {
	address, err := url.Parse(baseURL)
	if err != nil || (address.Scheme != "https" && address.Scheme != "http") || address.Host == "" {
		return fmt.Errorf("heliograph: the base URL must be like https://gateway.example, not %q", baseURL)
	}
	if apiKey == "" || strings.ContainsFunc(apiKey, func(r rune) bool { return r < '!' || r > '~' || r == '"' || r == '\'' }) {
		return fmt.Errorf("heliograph: the %s and 64 hexadecimal digits", whatKeyIs)
	}
	return nil
}

// apiRequest is a request before it has an address and a body of bytes.
type apiRequest struct {
	method  string
	path    string
	queries url.Values
	headers http.Header
	body    any
}

func requestTo(method, format string, parameters ...string) *apiRequest {
	escaped := make([]any, len(parameters))
	for i, parameter := range parameters {
		escaped[i] = url.PathEscape(parameter)
	}
	path := fmt.Sprintf(format, escaped...)
	return &apiRequest{method: method, path: path, queries: url.Values{}, headers: http.Header{}}
}

// query adds a parameter unless it has its zero value.
func (r *apiRequest) query(name string, value any) {
	if reflect.ValueOf(value).IsZero() {
		return
	}
	if at, isTime := value.(time.Time); isTime {
		value = at.UTC().Format(time.RFC3339Nano)
	}
	r.queries.Set(name, fmt.Sprint(value))
}

func (r *apiRequest) header(name, value string) {
	if value != "" {
		r.headers.Set(name, value)
	}
}

// call makes a request whose response is JSON.
func call[T any](ctx context.Context, c *Client, r *apiRequest) (*T, error) {
	response, err := c.send(ctx, r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	result := new(T)
	if err := json.NewDecoder(response.Body).Decode(result); err != nil {
		return nil, fmt.Errorf("heliograph: the response is not what it should be: %w", err)
	}
	return result, nil
}

// send returns a response of 2xx, or an error.
func (c *Client) send(ctx context.Context, r *apiRequest) (*http.Response, error) {
	if c.err != nil {
		return nil, c.err
	}
	var body io.Reader
	if r.body != nil {
		encoded, err := json.Marshal(r.body)
		if err != nil {
			return nil, fmt.Errorf("heliograph: %w", err)
		}
		body = bytes.NewReader(encoded)
	}
	address := c.baseURL + r.path
	if len(r.queries) > 0 {
		address += "?" + r.queries.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, r.method, address, body)
	if err != nil {
		return nil, fmt.Errorf("heliograph: %w", err)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	for name, values := range r.headers {
		request.Header[name] = values
	}
	key := request.Header.Get("Idempotency-Key")
	// Every attempt with such a key would fail as if the network had.
	if strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return nil, errors.New("heliograph: the Idempotency-Key must be visible ASCII characters, without a line break")
	}
	if isSend(request) && key == "" {
		request.Header.Set("Idempotency-Key", newKey())
	}
	return c.do(request, true)
}

// do makes a request and turns every response but 2xx into an error. The API key goes to the service alone.
func (c *Client) do(request *http.Request, withKey bool) (*http.Response, error) {
	if withKey {
		request.Header.Set("Authorization", "Bearer "+c.apiKey)
	}
	request.Header.Set("User-Agent", "heliograph-go/"+Version)
	response, err := c.policy.do(c.doer, request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return nil, errorOf(response)
	}
	return response, nil
}

func newKey() string {
	key := make([]byte, 16)
	_, _ = rand.Read(key) // It never fails; without randomness the program ends.
	return hex.EncodeToString(key)
}
