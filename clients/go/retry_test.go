package heliograph

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// answers is a service that gives one response after the other; nil breaks the connection.
type answers struct {
	*httptest.Server
	keys  []string
	times []time.Time
}

type answer func(http.ResponseWriter)

func serve(t *testing.T, list ...answer) *answers {
	t.Helper()
	a := &answers{}
	a.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		count := len(a.keys)
		a.keys = append(a.keys, r.Header.Get("Idempotency-Key"))
		a.times = append(a.times, time.Now())
		if count >= len(list) {
			t.Errorf("request %d came unexpected", count+1)
			return
		}
		if list[count] == nil {
			panic(http.ErrAbortHandler)
		}
		list[count](w)
	}))
	// Go's own transport repeats requests when a connection breaks that it used before.
	a.Config.SetKeepAlivesEnabled(false)
	a.Start()
	t.Cleanup(a.Close)
	return a
}

func status(code int, headers ...string) answer {
	return func(w http.ResponseWriter) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		body := `{"error": {"code": "service_unavailable", "message": "Later.", "requestId": "req_1", "param": null}}`
		if code < 300 {
			body = `{"data": [], "hasMore": false, "nextCursor": null}`
		}
		fmt.Fprint(w, body)
	}
}

func brokenOff(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", "100")
	fmt.Fprint(w, `{"data": [`)
}

var hello = SendText{PhoneNumberID: "1", To: "+12025550143", Text: SendTextText{Body: "Hi"}}

func TestReadsAreRepeatedAfterTemporaryFailures(t *testing.T) {
	service := serve(t, status(503), nil, brokenOff, status(200))
	if _, err := New(service.URL, "ck_1").ListEvents(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	for i := 1; i < len(service.times); i++ {
		step := firstWait << (i - 1)
		if wait := service.times[i].Sub(service.times[i-1]); wait < step/2 || wait > step+200*time.Millisecond {
			t.Errorf("wait %d was %s", i, wait)
		}
	}
}

func TestASendIsRepeatedWithItsKey(t *testing.T) {
	for _, given := range []string{"", "order-7"} {
		service := serve(t, nil, status(409, "Retry-After", "0"), status(200))
		client := New(service.URL, "ck_1")
		if _, err := client.SendMessage(context.Background(), &SendMessageParams{IdempotencyKey: given}, hello); err != nil {
			t.Fatal(err)
		}
		key := service.keys[0]
		if len(key) == 0 || (given != "" && key != given) {
			t.Errorf("the key was %q", key)
		}
		if strings.Join(service.keys, " ") != strings.Join([]string{key, key, key}, " ") {
			t.Errorf("the keys were %v", service.keys)
		}
	}
}

func TestAnIdempotencyKeyThatIsNoHeaderIsRefusedAtOnce(t *testing.T) {
	for _, key := range []string{"order-7\n", "order-7\r\nX: y", "a\x00", "a\x7f"} {
		service := serve(t)
		began := time.Now()
		_, err := New(service.URL, "ck_1").SendMessage(context.Background(), &SendMessageParams{IdempotencyKey: key}, hello)
		var connection *ConnectionError
		if err == nil || errors.As(err, &connection) || !strings.Contains(err.Error(), "Idempotency-Key") {
			t.Errorf("%q: %v", key, err)
		}
		// Repetitions take two seconds at least.
		if time.Since(began) > time.Second || len(service.keys) > 0 {
			t.Errorf("%q was tried", key)
		}
	}
}

func TestRetryAfterIsHonouredInSecondsAndAsADate(t *testing.T) {
	for name, valueOf := range map[string]func() string{
		"seconds": func() string { return "1" },
		"a date":  func() string { return time.Now().Add(2 * time.Second).UTC().Format(http.TimeFormat) },
	} {
		later := func(w http.ResponseWriter) { status(503, "Retry-After", valueOf())(w) }
		service := serve(t, later, status(200))
		if _, err := New(service.URL, "ck_1").ListEvents(context.Background(), nil); err != nil {
			t.Fatal(err)
		}
		// A date has whole seconds.
		if wait := service.times[1].Sub(service.times[0]); wait < 900*time.Millisecond || wait > 2500*time.Millisecond {
			t.Errorf("with %s the wait was %s", name, wait)
		}
	}
}

func TestNotRepeated(t *testing.T) {
	read := func(c *Client) error { _, err := c.ListEvents(context.Background(), nil); return err }
	send := func(c *Client) error { _, err := c.Send(context.Background(), hello); return err }
	write := func(c *Client) error {
		_, err := c.CreateWebhookEndpoint(context.Background(), NewWebhookEndpoint{URL: "https://tenant.example"})
		return err
	}
	for name, one := range map[string]struct {
		answer  answer
		call    func(*Client) error
		options []Option
	}{
		"a write":                        {status(503), write, nil},
		"a write without a response":     {nil, write, nil},
		"a refusal":                      {status(422), send, nil},
		"a conflict":                     {status(409), send, nil},
		"the first response, repeated":   {status(503, "Idempotent-Replayed", "true"), send, nil},
		"anything with no retries":       {status(503), read, []Option{WithRetries(0)}},
		"a Retry-After that is too long": {status(503, "Retry-After", "3600"), read, nil},
	} {
		t.Run(name, func(t *testing.T) {
			err := one.call(New(serve(t, one.answer).URL, "ck_1", one.options...))
			var response *Error
			var connection *ConnectionError
			if errors.As(err, &response) == errors.As(err, &connection) {
				t.Fatalf("the error was %v", err)
			}
			if response != nil && (response.RequestID != "req_1" || response.Code != ErrorCodeServiceUnavailable) {
				t.Errorf("the error was %+v", response)
			}
		})
	}
}

func TestTheCallerEndsAWait(t *testing.T) {
	service := serve(t, status(503, "Retry-After", "50"))
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if _, err := New(service.URL, "ck_1").ListEvents(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error was %v", err)
	}
}

func TestSilenceEndsARequestAndADownload(t *testing.T) {
	var isSlow atomic.Bool
	hanging := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/file" {
			// Slow altogether, and never silent.
			for range 6 {
				fmt.Fprint(w, "part")
				w.(http.Flusher).Flush()
				time.Sleep(100 * time.Millisecond)
			}
			isSlow.Store(true)
		}
		<-r.Context().Done()
	}))
	defer hanging.Close()
	client := New(hanging.URL, "ck_1", WithTimeout(300*time.Millisecond), WithRetries(0))
	var connection *ConnectionError
	if _, err := client.ListEvents(context.Background(), nil); !errors.As(err, &connection) || !connection.Timeout() {
		t.Errorf("the error was %v", err)
	}
	file, err := client.DownloadMedia(context.Background(), hanging.URL+"/file")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	content, err := io.ReadAll(file)
	if !isSlow.Load() || len(content) != 24 || !errors.As(err, &connection) || !connection.Timeout() {
		t.Errorf("%d bytes came, and then %v", len(content), err)
	}
}

func TestMessagesSayTheirTypeAndChangesSayNull(t *testing.T) {
	for want, given := range map[string]any{
		`{"phoneNumberId":"1","text":{"body":"Hi"},"to":"+12025550143","type":"text"}`: hello,
		`{"filter":null,"maxInFlight":3}`:                                              WebhookEndpointChange{Filter: Null[[]string](), MaxInFlight: Value(3)},
	} {
		var body []byte
		service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ = io.ReadAll(r.Body)
			fmt.Fprint(w, "{}")
		}))
		client := New(service.URL, "ck_1")
		if message, isMessage := given.(SendText); isMessage {
			_, _ = client.Send(context.Background(), message)
		} else {
			_, _ = client.UpdateWebhookEndpoint(context.Background(), "1", given.(WebhookEndpointChange))
		}
		service.Close()
		if string(body) != want {
			t.Errorf("the body was %s", body)
		}
	}
}

const apiKey = "ck_a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1"

func TestAKeyFromAFileWorks(t *testing.T) {
	for _, given := range []string{apiKey + "\n", apiKey + "\r\n", " " + apiKey + " ", "\ufeff" + apiKey} {
		var got string
		service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got = r.Header.Get("Authorization")
			status(200)(w)
		}))
		if _, err := New(" "+service.URL+"/\n", given).ListEvents(context.Background(), nil); err != nil || got != "Bearer "+apiKey {
			t.Errorf("with %q the header was %q and the error %v", given, got, err)
		}
		service.Close()
	}
}

// doerFunc makes no requests: what cannot be one must not become one.
type doerFunc func(*http.Request) (*http.Response, error)

func (f doerFunc) Do(request *http.Request) (*http.Response, error) { return f(request) }

func TestAKeyOrAddressThatIsNoneIsRefusedAtOnceAndNotShown(t *testing.T) {
	const address = "https://gateway.example"
	given := map[string]string{
		apiKey + "\n" + apiKey: address, "Bearer " + apiKey: address, `"` + apiKey + `"`: address, apiKey + "é": address, "": address,
	}
	addresses := []string{"gateway.example", "127.0.0.1:8080", "localhost:8080", `"https://gateway.example"`, "ftp://x", "https://a b", ""}
	check := func(baseURL, key string) {
		requests := 0
		doer := doerFunc(func(*http.Request) (*http.Response, error) { requests++; return nil, errors.New("asked") })
		client := New(baseURL, key, WithHTTPClient(doer))
		_, read := client.ListEvents(context.Background(), nil)
		_, sent := client.Send(context.Background(), hello)
		_, uploaded := client.UploadMedia(context.Background(), strings.NewReader("x"), "image/png", "x.png")
		for _, err := range []error{read, sent, uploaded} {
			if err == nil || requests > 0 || strings.Contains(err.Error(), "a1a1") {
				t.Errorf("with %q, %q: %d requests and the error %v", baseURL, key, requests, err)
			}
		}
	}
	for key, baseURL := range given {
		check(baseURL, key)
	}
	for _, baseURL := range addresses {
		check(baseURL, apiKey)
	}
}
