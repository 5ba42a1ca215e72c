// Tests the claims of bench/README.md about handshakes: without -resume every handshake is full; with it, only each
// client's first one is.
package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func opened(t *testing.T, resume bool, status int) figures {
	server := httptest.NewTLSServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) { out.WriteHeader(status) }))
	t.Cleanup(server.Close)
	at := strings.TrimPrefix(server.URL, "https://")
	return run(options{at: at, name: "a.test", path: "/", time: 300 * time.Millisecond, clients: 3, resume: resume, timeout: 10 * time.Second})
}

func TestHandshakesAreFullByDefault(t *testing.T) {
	result := opened(t, false, http.StatusOK)
	if result.Connections < 6 || result.Resumed != 0 || len(result.Failures) > 0 {
		t.Fatalf("not one full handshake after another: %+v", result)
	}
}

func TestAllHandshakesExceptTheFirstOfEachClientAreResumed(t *testing.T) {
	result := opened(t, true, http.StatusOK)
	if result.Connections < 6 || result.Resumed != result.Connections-3 || len(result.Failures) > 0 {
		t.Fatalf("3 clients, so 3 full handshakes: %+v", result)
	}
}

func TestAnAnswerOtherThan200IsAFailure(t *testing.T) {
	result := opened(t, false, http.StatusBadGateway)
	if result.Connections != 0 || result.Failures[`answered "HTTP/1.1 502 Bad Gateway"`] == 0 {
		t.Fatalf("a refusal was counted as a connection: %+v", result)
	}
}
