/* 1,000 dispatches in plain Vulkan: where this fails, the driver is at fault and no test of dlhal
 * on it says anything. */
#include "plain_vulkan.h"

#define GROUPS 32u

int main(void) {
    struct plain p;
    struct plain_buffer in, out;
    struct plain_kernel kernel;
    REQUIRE(plain_open_instance(&p) == VK_SUCCESS);
    printf("%s\n", check_driver);
    REQUIRE(plain_open_device(&p, NULL, 0, NULL) == VK_SUCCESS);
    REQUIRE(plain_create_buffer(&p, GROUPS * PLAIN_GROUP * 4, &in) == VK_SUCCESS);
    REQUIRE(plain_create_buffer(&p, GROUPS * 4, &out) == VK_SUCCESS);
    plain_create_kernel(&p, &in, &out, &kernel);

    for (uint32_t round = 0; round < 10; round++) {
        for (uint32_t i = 0; i < GROUPS * PLAIN_GROUP; i++) in.words[i] = i * 2654435761u + round;
        REQUIRE(plain_flush(&p, &in) == VK_SUCCESS);
        REQUIRE(plain_run(&p, &kernel, GROUPS, 100) == VK_SUCCESS);
        REQUIRE(plain_invalidate(&p, &out) == VK_SUCCESS);
        for (uint32_t group = 0; group < GROUPS; group++) {
            uint32_t sum = 0;
            for (uint32_t i = 0; i < PLAIN_GROUP; i++) sum += in.words[group * PLAIN_GROUP + i];
            CHECK_INT(out.words[group], sum);
        }
    }

    plain_destroy_kernel(&p, &kernel);
    plain_destroy_buffer(&p, &in);
    plain_destroy_buffer(&p, &out);
    plain_close(&p);
    return check_finish();
}
