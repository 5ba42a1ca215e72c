// Tests the claims of bench/README.md about sockets: every message comes back and is measured from its intended time, and
// the quiet phases are reported.
package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

func plan(server *httptest.Server) options {
	at := "ws" + strings.TrimPrefix(server.URL, "http") + "/echo"
	return options{at: at, count: 20, rate: 200, size: 100, time: 500 * time.Millisecond, rest: 10 * time.Millisecond}
}

func TestEveryMessageComesBack(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(echo))
	defer server.Close()
	var phases []string
	result, err := run(plan(server), func(phase string) { phases = append(phases, phase) })
	if err != nil || result.Sent != 100 || result.Echoed != 100 {
		t.Fatalf("not 100 messages and their echoes: %+v %v", result, err)
	}
	if strings.Join(phases, " ") != "open sent" {
		t.Errorf("phases: %v", phases)
	}
}

func TestADelayIsPartOfTheFigure(t *testing.T) {
	const delay = 50 * time.Millisecond
	upgrader := websocket.Upgrader{}
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		in.Header.Del("Origin")
		socket, err := upgrader.Upgrade(out, in, nil)
		if err != nil {
			return
		}
		defer socket.Close()
		for {
			kind, message, err := socket.ReadMessage()
			time.Sleep(delay)
			if err != nil || socket.WriteMessage(kind, message) != nil {
				return
			}
		}
	}))
	defer server.Close()
	result, err := run(plan(server), func(string) {})
	if err != nil || result.P50Us < delay.Microseconds() {
		t.Fatalf("an echo after %v was timed as %d us: %v", delay, result.P50Us, err)
	}
}
