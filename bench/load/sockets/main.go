// Command sockets holds many WebSockets open, sends messages through them at a steady rate and measures their echoes.
// With -serve it is the member that echoes. It knows WebSockets, and nothing of the proxy between them.
package main

import (
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
)

type options struct {
	at    string
	count int
	rate  int
	size  int
	time  time.Duration
	rest  time.Duration
}

// figures count sent messages and their echoes. `late` is the largest delay of a start.
type figures struct {
	Sent   int   `json:"sent"`
	Echoed int   `json:"echoed"`
	TookUs int64 `json:"took_us"`
	P50Us  int64 `json:"p50_us"`
	P99Us  int64 `json:"p99_us"`
	LateUs int64 `json:"late_us"`
}

func main() {
	var opts options
	serve := flag.String("serve", "", "echo here instead: a Unix socket's path")
	flag.StringVar(&opts.at, "at", "", "ws://host:port/path")
	flag.IntVar(&opts.count, "count", 1000, "WebSockets")
	flag.IntVar(&opts.rate, "rate", 1000, "messages a second through all of them together")
	flag.IntVar(&opts.size, "size", 100, "bytes of a message, at least 8")
	flag.DurationVar(&opts.time, "time", 10*time.Second, "how long")
	flag.DurationVar(&opts.rest, "rest", time.Second, "silence before and after, in which others take their readings")
	flag.Parse()
	if (*serve == "") == (opts.at == "") || opts.count < 1 || opts.rate < 1 || opts.size < 8 {
		fmt.Fprintln(os.Stderr, "usage: sockets -serve PATH, or sockets -at ws://HOST:PORT/PATH [-count N] [-rate N] [-size N] [-time D] [-rest D]")
		os.Exit(2)
	}
	if err := act(*serve, opts); err != nil {
		fmt.Fprintln(os.Stderr, "sockets:", err)
		os.Exit(1)
	}
}

func act(serve string, opts options) error {
	if serve != "" {
		listener, err := net.Listen("unix", serve)
		if err != nil {
			return err
		}
		return http.Serve(listener, http.HandlerFunc(echo))
	}
	result, err := run(opts, func(phase string) { fmt.Fprintln(os.Stderr, phase) })
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}

// echo answers any other request with "ok", for checks.
func echo(out http.ResponseWriter, in *http.Request) {
	if !websocket.IsWebSocketUpgrade(in) {
		fmt.Fprint(out, "ok")
		return
	}
	upgrader := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
	socket, err := upgrader.Upgrade(out, in, nil)
	if err != nil {
		return
	}
	defer socket.Close()
	for {
		kind, message, err := socket.ReadMessage()
		if err != nil || socket.WriteMessage(kind, message) != nil {
			return
		}
	}
}

// run reports `open` when all sockets are open and `sent` after the last echo. Around the messages it sends nothing for a
// while.
func run(opts options, say func(phase string)) (figures, error) {
	began := time.Now()
	sockets, err := open(opts)
	if err != nil {
		return figures{}, err
	}
	var readers sync.WaitGroup
	var echoed atomic.Int64
	delays := make([][]time.Duration, len(sockets))
	for i, socket := range sockets {
		readers.Add(1)
		go func() {
			defer readers.Done()
			for {
				_, message, err := socket.ReadMessage()
				if err != nil {
					return
				}
				delays[i] = append(delays[i], time.Since(began)-time.Duration(binary.BigEndian.Uint64(message)))
				echoed.Add(1)
			}
		}()
	}
	say("open")
	time.Sleep(opts.rest)
	result, err := send(opts, sockets, began)
	for wait := 0; err == nil && int(echoed.Load()) < result.Sent && wait < 500; wait++ {
		time.Sleep(10 * time.Millisecond)
	}
	say("sent")
	time.Sleep(opts.rest)
	for _, socket := range sockets {
		socket.Close()
	}
	readers.Wait()
	all := slices.Concat(delays...)
	slices.Sort(all)
	result.Echoed = len(all)
	if len(all) > 0 {
		result.P50Us = all[len(all)/2].Microseconds()
		result.P99Us = all[len(all)*99/100].Microseconds()
	}
	return result, err
}

func open(opts options) ([]*websocket.Conn, error) {
	dialer := websocket.Dialer{HandshakeTimeout: 10 * time.Second}
	sockets := make([]*websocket.Conn, 0, opts.count)
	for range opts.count {
		socket, _, err := dialer.Dial(opts.at, http.Header{"Origin": {"http" + strings.TrimPrefix(opts.at, "ws")}})
		if err != nil {
			return nil, fmt.Errorf("socket %d of %d: %w", len(sockets)+1, opts.count, err)
		}
		sockets = append(sockets, socket)
	}
	return sockets, nil
}

// send uses the sockets in turn, with one message every 1/rate of a second whatever happens to the others: an open loop.
// A message contains its intended time, so that a late start counts as a part of its delay.
func send(opts options, sockets []*websocket.Conn, began time.Time) (figures, error) {
	start := time.Now()
	gap := time.Second / time.Duration(opts.rate)
	message := make([]byte, opts.size)
	var result figures
	for at := time.Duration(0); at < opts.time; at += gap {
		due := start.Add(at)
		time.Sleep(time.Until(due))
		result.LateUs = max(result.LateUs, time.Since(due).Microseconds())
		binary.BigEndian.PutUint64(message, uint64(due.Sub(began)))
		if err := sockets[result.Sent%len(sockets)].WriteMessage(websocket.BinaryMessage, message); err != nil {
			return result, fmt.Errorf("message %d: %w", result.Sent+1, err)
		}
		result.Sent++
	}
	result.TookUs = time.Since(start).Microseconds()
	return result, nil
}
