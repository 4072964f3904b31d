package locktest_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"lockstep/locktest"
)

func ExamplePromises() {
	var orders locktest.Subject
	orders.Promises = locktest.Promises{
		NotTraffic: "a waiter asks every 20 ms, so that it gets the lock soon",
	}

	fmt.Println("traffic is not judged:", orders.Promises.NotTraffic)
	// Output: traffic is not judged: a waiter asks every 20 ms, so that it gets the lock soon
}

// docs/locktest.md shows the statement of ExamplePromises, which compiles here.
func TestTheDocumentHasTheExampleOfPromises(t *testing.T) {
	document, err := os.ReadFile("../docs/locktest.md")
	if err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(document), "```go\norders.Promises")
	shown, _, ended := strings.Cut(rest, "```")
	if !found || !ended {
		t.Fatal("docs/locktest.md has no example that begins with orders.Promises")
	}
	shown = strings.ReplaceAll("orders.Promises"+shown, "\n", "\n\t")
	if !strings.Contains(string(example), "\t"+strings.TrimRight(shown, "\t")) {
		t.Errorf("docs/locktest.md shows code that does not compile here:\n%s", shown)
	}
}
