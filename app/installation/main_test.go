package installation

import (
	"os"
	"testing"

	"posttrade/app/apptest"
)

func TestMain(m *testing.M) { os.Exit(apptest.Main(m)) }
