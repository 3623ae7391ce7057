package installation

import (
	"encoding/json"
	"fmt"
	"os"
)

// writePorts writes the addresses of all listeners to a file for other programs. The file appears
// whole or not at all.
//
// The text is a JSON object of service and host:port. The file is not synced: a start writes it
// again. It stays behind when the process ends, so a reader must be ready for addresses that do
// not answer.
func writePorts(path string, ports map[string]string) error {
	text, err := json.MarshalIndent(ports, "", "  ")
	if err != nil {
		return err
	}
	temporary := path + ".new"
	if err := os.WriteFile(temporary, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("ports.json: %w", err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("ports.json: %w", err)
	}
	return nil
}
