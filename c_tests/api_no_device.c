/* No loader or no driver: no device, a status and a reason, and nothing worse. */
#include <sys/stat.h>

#include "api.h"
#include "child.h"

static int finds_no_device(void) {
    int32_t count = -1;
    void *nothing = &count;
    static char text[65536];
    OK(dlhal_device_count(&count));
    CHECK_INT(count, 0);
    CHECK(dlhal_alloc_data_space(api_gpu, 64, 64, api_f32, &nothing) != DLHAL_STATUS_OK);
    CHECK(strlen(dlhal_last_error_message()) > 0);
    OK(dlhal_diagnose(text, sizeof text, NULL));
    puts(text);
    OK(dlhal_shutdown());
    return check_finish();
}

static struct child child;

static void without_a_driver_there_is_no_device_and_a_reason(void) {
    child_run(&child, "finds no device", 120,
              (const char *const[]){"VK_DRIVER_FILES=/nowhere/icd.json", NULL});
    CHECK(child_good(&child));
    CHECK_CONTAINS(child.out, "/nowhere/icd.json");
}

static void without_a_loader_there_is_no_device_and_a_reason(void) {
    static const char *const names[] = {"libvulkan.so.1", "libvulkan.so"};
    char folder[] = "/tmp/dlhal-loader-XXXXXX", path[64], variable[64];
    REQUIRE(mkdtemp(folder));
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        FILE *file = fopen(path, "w");
        REQUIRE(file);
        fputs("this is no library\n", file);
        fclose(file);
    }
    snprintf(variable, sizeof variable, "LD_LIBRARY_PATH=%s", folder);
    child_run(&child, "finds no device", 120, (const char *const[]){variable, NULL});
    CHECK(child_good(&child));
    CHECK_CONTAINS(child.out, "libvulkan.so.1");
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

int main(int argc, char **argv) {
    (void)argv;
    if (argc > 1) return finds_no_device();
    without_a_driver_there_is_no_device_and_a_reason();
    without_a_loader_there_is_no_device_and_a_reason();
    return check_finish();
}
