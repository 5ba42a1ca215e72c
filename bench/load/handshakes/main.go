// Command handshakes opens TLS connections one after another, sends one request on each and closes it, and prints their
// number. It knows TLS 1.3 and one GET. It knows nothing of the servers.
package main

import (
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"time"
)

type options struct {
	at      string
	name    string
	path    string
	time    time.Duration
	clients int
	resume  bool
	timeout time.Duration
}

// figures are the results. A failed connection counts only as failed. `resumed` are handshakes without a certificate.
type figures struct {
	Connections int            `json:"connections"`
	Resumed     int            `json:"resumed"`
	TookUs      int64          `json:"took_us"`
	Failures    map[string]int `json:"failures,omitempty"`
}

func main() {
	var opts options
	flag.StringVar(&opts.at, "at", "", "host:port")
	flag.StringVar(&opts.name, "name", "shop.example.com", "the server's name, for SNI and Host")
	flag.StringVar(&opts.path, "path", "/", "what is asked for on each connection")
	flag.DurationVar(&opts.time, "time", 4*time.Second, "how long")
	flag.IntVar(&opts.clients, "clients", 8, "clients, each with one connection at a time")
	flag.BoolVar(&opts.resume, "resume", false, "each client resumes the session of its last connection")
	flag.DurationVar(&opts.timeout, "timeout", 10*time.Second, "when a client gives up")
	flag.Parse()
	if opts.at == "" || opts.clients < 1 {
		fmt.Fprintln(os.Stderr, "usage: handshakes -at HOST:PORT [-name NAME] [-path PATH] [-time D] [-clients N] [-resume]")
		os.Exit(2)
	}
	if err := json.NewEncoder(os.Stdout).Encode(run(opts)); err != nil {
		fmt.Fprintln(os.Stderr, "handshakes:", err)
		os.Exit(1)
	}
}

func run(opts options) figures {
	all := figures{Failures: map[string]int{}}
	var mutex sync.Mutex
	var clients sync.WaitGroup
	began := time.Now()
	for range opts.clients {
		clients.Add(1)
		go func() {
			defer clients.Done()
			own := repeat(opts, began.Add(opts.time))
			mutex.Lock()
			defer mutex.Unlock()
			all.Connections += own.Connections
			all.Resumed += own.Resumed
			for what, count := range own.Failures {
				all.Failures[what] += count
			}
		}()
	}
	clients.Wait()
	all.TookUs = time.Since(began).Microseconds()
	return all
}

// repeat is one client with its own sessions, like a browser.
func repeat(opts options, until time.Time) figures {
	// One key exchange for all peers: newer clients offer a hybrid one first, which not every peer supports.
	settings := &tls.Config{
		ServerName:         opts.name,
		InsecureSkipVerify: true,
		MinVersion:         tls.VersionTLS13,
		CurvePreferences:   []tls.CurveID{tls.X25519},
	}
	if opts.resume {
		settings.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	}
	own := figures{Failures: map[string]int{}}
	for time.Now().Before(until) {
		resumed, err := once(opts, settings)
		switch {
		case err != nil:
			own.Failures[err.Error()]++
			time.Sleep(10 * time.Millisecond)
		case resumed:
			own.Resumed++
			fallthrough
		default:
			own.Connections++
		}
	}
	return own
}

// once connects, sends a request, and reads to the end, because the session ticket comes with the response.
func once(opts options, settings *tls.Config) (bool, error) {
	dialer := net.Dialer{Timeout: opts.timeout, LocalAddr: source(opts.at)}
	plain, err := dialer.Dial("tcp", opts.at)
	if err != nil {
		return false, fmt.Errorf("connect: %w", unaddressed(err))
	}
	defer plain.Close()
	_ = plain.SetDeadline(time.Now().Add(opts.timeout))
	conn := tls.Client(plain, settings)
	if err := conn.Handshake(); err != nil {
		return false, fmt.Errorf("handshake: %w", unaddressed(err))
	}
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", opts.path, opts.name); err != nil {
		return false, fmt.Errorf("write: %w", unaddressed(err))
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		return false, fmt.Errorf("read: %w", unaddressed(err))
	}
	if !strings.HasPrefix(string(answer), "HTTP/1.1 200 ") {
		line, _, _ := strings.Cut(string(answer), "\r\n")
		return false, fmt.Errorf("answered %q", line)
	}
	_ = conn.Close()
	return conn.ConnectionState().DidResume, nil
}

// source is one of loopback's many addresses: the port of a closed connection stays in use for a minute, and the number
// of ports per address is limited.
func source(at string) net.Addr {
	if !strings.HasPrefix(at, "127.") {
		return nil
	}
	return &net.TCPAddr{IP: net.IPv4(127, 77, byte(rand.IntN(250)), byte(1+rand.IntN(250)))}
}

// unaddressed removes the ports, so that equal errors are counted as one.
func unaddressed(err error) error {
	if inner, ok := err.(*net.OpError); ok {
		return inner.Err
	}
	return err
}
