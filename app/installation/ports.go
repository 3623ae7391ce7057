package installation

import (
	"encoding/json"
	"fmt"

	"posttrade/ring/disk"
)

// writePorts writes the addresses of all listeners to a file for other programs. The file appears
// whole or not at all.
//
// The text is a JSON object of service and host:port. A start writes it again. It stays behind when
// the process ends, so a reader must be ready for addresses that do not answer.
func writePorts(path string, ports map[string]string) error {
	text, err := json.MarshalIndent(ports, "", "  ")
	if err != nil {
		return err
	}
	if err := disk.ReplaceText(path, 0o644, append(text, '\n')); err != nil {
		return fmt.Errorf("ports.json: %w", err)
	}
	return nil
}
