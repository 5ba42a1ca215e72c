// Tests the claims of bench/README.md about the generator: the schedule is Poisson and repeatable, the loop is open, and
// the latency counts from the intended start.
package main

import (
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

func TestTheSameSeedGivesTheSameExponentialGaps(t *testing.T) {
	opts := options{steps: []step{{1000, 20 * time.Second}}, seed: 7, longShare: 0.1, edges: 8}
	one, two := newPlan(opts), newPlan(opts)
	var sum, squares, long float64
	previous := time.Duration(0)
	for i, at := range one.arrivals {
		if two.arrivals[i] != at || two.long[i] != one.long[i] || two.edge[i] != one.edge[i] {
			t.Fatalf("the plans differ at request %d", i)
		}
		gap := (at - previous).Seconds()
		previous = at
		sum += gap
		squares += gap * gap
		if one.long[i] {
			long++
		}
	}
	n := float64(len(one.arrivals))
	mean := sum / n
	deviation := math.Sqrt(squares/n - mean*mean)
	if math.Abs(mean-0.001) > 0.00005 || math.Abs(deviation/mean-1) > 0.05 {
		t.Errorf("gaps have mean %.6f and deviation %.6f; both should be near 0.001", mean, deviation)
	}
	if math.Abs(long/n-0.1) > 0.01 {
		t.Errorf("%.3f of the requests are long, not 0.1", long/n)
	}
}

func TestUnevenEdgesSendAsTheirNumbers(t *testing.T) {
	plan := newPlan(options{steps: []step{{1000, 20 * time.Second}}, seed: 7, edges: 4, uneven: true})
	var sent [4]float64
	for _, edge := range plan.edge {
		sent[edge]++
	}
	for edge, count := range sent {
		share := count / float64(len(plan.edge))
		if math.Abs(share-float64(edge+1)/10) > 0.02 {
			t.Errorf("edge %d sends %.3f of the requests", edge, share)
		}
	}
}

func TestRequestsStartOnTimeWhileNoneIsAnswered(t *testing.T) {
	var running, most atomic.Int64
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		now := running.Add(1)
		for top := most.Load(); now > top && !most.CompareAndSwap(top, now); top = most.Load() {
		}
		<-release
		running.Add(-1)
	}))
	defer server.Close()
	opts := options{targets: []string{server.URL}, steps: []step{{200, time.Second}}, timeout: 10 * time.Second, seed: 3, edges: 4}
	time.AfterFunc(1500*time.Millisecond, func() { close(release) })

	result := runOpen(opts)

	if most.Load() != int64(result.Planned) || len(result.Hits) != result.Planned {
		t.Fatalf("%d of %d planned requests ran at once, %d hits", most.Load(), result.Planned, len(result.Hits))
	}
	for _, hit := range result.Hits {
		if hit[2] > 200_000 || hit[3] < 400_000 {
			t.Errorf("start lag %d us, latency %d us: a request waited for an earlier one, or its wait was not counted", hit[2], hit[3])
		}
	}
}

func TestALateStartCountsAsLatency(t *testing.T) {
	late := &schedule{at: []time.Duration{0, time.Millisecond}}
	wait, stop := late.Pace(5*time.Millisecond, 1)
	if wait != 0 || stop {
		t.Errorf("a missed instant is made up for at once, got wait %v stop %v", wait, stop)
	}
	if since := time.Since(late.began); since < 5*time.Millisecond || since > time.Second {
		t.Errorf("zero should lie 5 ms back, lies %v back", since)
	}
	if _, stop := late.Pace(5*time.Millisecond, 2); !stop {
		t.Error("the schedule ends with its last request")
	}
}

func TestABodyIsPostedAsJSON(t *testing.T) {
	var right, others atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method == "POST" && r.URL.Path == "/batch" && r.Header.Get("Content-Type") == "application/json" && string(body) == "{}" {
			right.Add(1)
		} else {
			others.Add(1)
		}
	}))
	defer server.Close()

	runOpen(options{targets: []string{server.URL}, short: "/batch", body: []byte("{}"), steps: []step{{200, time.Second / 4}}, timeout: time.Second, edges: 2})

	if right.Load() == 0 || others.Load() != 0 {
		t.Errorf("%d requests were as they should be, %d were not", right.Load(), others.Load())
	}
}

func TestPathsFollowThePlan(t *testing.T) {
	var short, long atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery == "n=10" {
			long.Add(1)
		} else if r.URL.Path == "/page" {
			short.Add(1)
		}
	}))
	defer server.Close()
	opts := options{
		targets: []string{server.URL}, short: "/page", long: "/page?n=10", longShare: 0.5,
		steps: []step{{500, 400 * time.Millisecond}}, timeout: 5 * time.Second, seed: 5, edges: 3,
	}
	result := runOpen(opts)
	planned := int64(0)
	for _, hit := range result.Hits {
		planned += hit[0]
	}
	if planned == 0 || long.Load() != planned || short.Load()+long.Load() != int64(result.Planned) {
		t.Errorf("%d planned long of %d; the server saw %d long and %d short", planned, result.Planned, long.Load(), short.Load())
	}
}

func TestEachEdgeOfAnOpenLoopHasOneTarget(t *testing.T) {
	var asked [2]atomic.Int64
	var urls []string
	for i := range asked {
		server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked[i].Add(1) }))
		defer server.Close()
		urls = append(urls, server.URL)
	}
	result := runOpen(options{targets: urls, steps: []step{{400, time.Second / 2}}, timeout: time.Second, seed: 4, edges: 6})
	var told [2]int64
	for _, hit := range result.Hits {
		told[hit[5]]++
	}
	for i := range asked {
		if told[i] == 0 || told[i] != asked[i].Load() {
			t.Errorf("target %d got %d requests, and %d hits name it", i, asked[i].Load(), told[i])
		}
	}
}

func TestEachStepHasItsOwnRate(t *testing.T) {
	opts := options{steps: []step{{100, 10 * time.Second}, {1000, 10 * time.Second}, {100, 10 * time.Second}}, seed: 9, edges: 1}
	counts := [3]int{}
	previous := time.Duration(0)
	for _, at := range newPlan(opts).arrivals {
		if at < previous {
			t.Fatalf("%v comes after %v", at, previous)
		}
		previous = at
		counts[at/(10*time.Second)]++
	}
	for i, wanted := range []float64{1000, 10000, 1000} {
		if math.Abs(float64(counts[i])/wanted-1) > 0.1 {
			t.Errorf("step %d has %d arrivals, not about %.0f", i, counts[i], wanted)
		}
	}
}

func TestAStopSignalPrintsTheStartedRequests(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if asked.Add(1) == 20 {
			syscall.Kill(syscall.Getpid(), syscall.SIGTERM)
		}
	}))
	defer server.Close()
	opts := options{targets: []string{server.URL}, steps: []step{{100, time.Hour}}, timeout: 10 * time.Second, seed: 3, edges: 4}
	result := runOpen(opts)
	if result.Planned < 20 || result.Planned != int(asked.Load()) || len(result.Hits) != result.Planned {
		t.Errorf("%d planned, %d asked, %d hits", result.Planned, asked.Load(), len(result.Hits))
	}
	if last := result.Hits[len(result.Hits)-1][4]; last <= 0 || time.UnixMicro(result.Began+last).After(time.Now()) {
		t.Errorf("the last was to start %d us after %d", last, result.Began)
	}
}
