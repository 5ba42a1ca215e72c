// Tests the claims of bench/README.md about bursts: all requests of a burst run at once, each has its own number, and the
// time is that of the last response.
package main

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"
)

func TestABurstStartsAtOnceAndEachRequestIsDifferent(t *testing.T) {
	const count = 200
	var mutex sync.Mutex
	paths := map[string]bool{}
	all := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		mutex.Lock()
		paths[in.URL.Path] = true
		if len(paths)%count == 0 {
			close(all)
		}
		mutex.Unlock()
		<-all // no request is answered before all have arrived
		http.Redirect(out, in, "/elsewhere", http.StatusFound)
	}))
	defer server.Close()

	rows := run(options{targets: []string{server.URL + "/view/%d"}, count: count, turns: 1, timeout: 20 * time.Second, first: 7})

	if len(rows) != 1 || rows[0].Ends["302"] != count {
		t.Fatalf("not all were answered with their redirect: %v", rows)
	}
	if len(paths) != count || !paths["/view/7"] || !paths["/view/206"] {
		t.Errorf("%d different numbers, not %d from 7 on", len(paths), count)
	}
}

func TestTargetsTakeTurnsAndTheTimeIsThatOfTheLastAnswer(t *testing.T) {
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, in *http.Request) {
		if in.URL.Query().Get("n") == "3" {
			time.Sleep(150 * time.Millisecond)
		}
	}))
	defer slow.Close()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()

	rows := run(options{targets: []string{slow.URL + "/?n=%d", gone.URL + "/%d"}, count: 4, turns: 2, timeout: 20 * time.Second})

	for i, row := range rows {
		if row.Target != i%2 || row.Turn != i/2 {
			t.Fatalf("row %d is of target %d in turn %d", i, row.Target, row.Turn)
		}
	}
	if rows[0].Ends["200"] != 4 || rows[1].Ends["no answer"] != 4 {
		t.Errorf("ends: %v and %v", rows[0].Ends, rows[1].Ends)
	}
	if rows[0].TookUs < 150_000 {
		t.Errorf("%d us, but the last answer came after 150 ms", rows[0].TookUs)
	}
	times := rows[0].TimesUs["200"]
	slices.Sort(times)
	if len(times) != 4 || times[2] >= 150_000 || times[3] < 150_000 {
		t.Errorf("one of four takes 150 ms, not %v", times)
	}
}

func TestATurnCanRequestOneURLOnly(t *testing.T) {
	var mutex sync.Mutex
	asked := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, in *http.Request) {
		mutex.Lock()
		defer mutex.Unlock()
		asked[in.URL.Path]++
	}))
	defer server.Close()

	run(options{targets: []string{server.URL + "/page/%t"}, count: 3, turns: 2, timeout: 20 * time.Second, first: 7})

	if asked["/page/0"] != 3 || asked["/page/1"] != 3 {
		t.Errorf("asked for %v", asked)
	}
}
