// Command burst sends many requests at once to each of its targets in turn, and prints the time until the last response
// of each. It knows HTTP, and that `%d` in a target becomes another number in every request and `%t` the same in all
// requests of a turn. It knows nothing of the servers.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

type options struct {
	targets []string
	count   int
	turns   int
	pause   time.Duration
	timeout time.Duration
	first   int
}

// burst is one row: the target, the turn, the time until the last response, and how many requests ended in which way (a
// status, or an error). TimesUs has the time of each request from the signal on, by the way in which it ended.
type burst struct {
	Target  int                `json:"target"`
	Turn    int                `json:"turn"`
	TookUs  int64              `json:"took_us"`
	Ends    map[string]int     `json:"ends"`
	TimesUs map[string][]int64 `json:"times_us"`
}

// ended is how one request ended, and when.
type ended struct {
	how string
	at  time.Time
}

func main() {
	var opts options
	flag.IntVar(&opts.count, "count", 80, "requests at once")
	flag.IntVar(&opts.turns, "turns", 1, "bursts for each target")
	flag.DurationVar(&opts.pause, "pause", 200*time.Millisecond, "rest after each burst")
	flag.DurationVar(&opts.timeout, "timeout", 30*time.Second, "when a client gives up")
	flag.IntVar(&opts.first, "first", 1, "the number in the first request")
	flag.Parse()
	opts.targets = flag.Args()
	if len(opts.targets) == 0 || opts.count < 1 || opts.turns < 1 {
		fmt.Fprintln(os.Stderr, "usage: burst [-count N] [-turns N] [-pause D] [-timeout D] [-first N] URL ...")
		os.Exit(2)
	}
	if err := json.NewEncoder(os.Stdout).Encode(run(opts)); err != nil {
		fmt.Fprintln(os.Stderr, "burst:", err)
		os.Exit(1)
	}
}

// run takes the targets in turn, so that drift of the machine affects all of them equally.
func run(opts options) []burst {
	clients := make([]*http.Client, len(opts.targets))
	for i := range clients {
		clients[i] = client(opts)
	}
	var rows []burst
	number := opts.first
	for turn := range opts.turns {
		for i, target := range opts.targets {
			same := strings.Replace(target, "%t", fmt.Sprint(turn), 1)
			row := send(clients[i], same, number, opts.count)
			row.Target, row.Turn = i, turn
			rows = append(rows, row)
			number += opts.count
			time.Sleep(opts.pause)
		}
	}
	return rows
}

// client keeps as many connections as a burst has requests, like an edge in front of a service.
func client(opts options) *http.Client {
	return &http.Client{
		Timeout: opts.timeout,
		Transport: &http.Transport{
			DialContext:         (&net.Dialer{}).DialContext,
			MaxIdleConnsPerHost: opts.count,
			DisableCompression:  true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// send starts all requests at one signal and waits for the last response.
func send(client *http.Client, target string, number, count int) burst {
	ends := make(chan ended, count)
	start := make(chan struct{})
	var ready sync.WaitGroup
	ready.Add(count)
	for i := range count {
		url := strings.Replace(target, "%d", fmt.Sprint(number+i), 1)
		go func() {
			ready.Done()
			<-start
			how := get(client, url)
			ends <- ended{how, time.Now()}
		}()
	}
	ready.Wait()
	began := time.Now()
	close(start)
	row := burst{Ends: map[string]int{}, TimesUs: map[string][]int64{}}
	for range count {
		end := <-ends
		row.Ends[end.how]++
		row.TimesUs[end.how] = append(row.TimesUs[end.how], end.at.Sub(began).Microseconds())
	}
	row.TookUs = time.Since(began).Microseconds()
	return row
}

func get(client *http.Client, url string) string {
	response, err := client.Get(url)
	if err != nil {
		return "no answer"
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return "cut off"
	}
	return fmt.Sprint(response.StatusCode)
}
