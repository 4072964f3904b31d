package etcdtest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// etcd has no restart without data, so a story that needs one is skipped, and says why.
func TestAStoryWhoseFaultTheServersDoNotHaveIsSkipped(t *testing.T) {
	out, err := exec.Command(os.Args[0], "-test.run=^TestOrders$/^stories$/^server-restarts-without-its-data$", "-test.v").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"--- SKIP: TestOrders/stories/server-restarts-without-its-data", "n/a: ", "the fault does not apply: server 1 of orders does not start again as the same member without its data"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
}
